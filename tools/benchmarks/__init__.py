"""Named workloads, each measured beside a peer in the same run; `tools/bench.py` starts them.

    machine    what the figures were made on, and one core to make them on
    report     a measurement, and the Markdown table of some
    stopwatch  repeated timing, and runs in a fresh process
    corpora    documents drawn from a seed: weights, fingerprints, and rewrites as queries
    stored     the index of a corpus, made once and kept
    peers      FAISS
    online, exact, rotating, building, realtext      the workloads
"""
