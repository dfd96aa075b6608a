"""Named workloads, each measured with a peer in the same run; `tools/bench.py` starts them.

    machine    what the figures were made on, and one core to make them on
    report     a measurement, and the Markdown table of some
    stopwatch  repeated timing, and runs in a fresh process
    corpora    documents drawn from a seed: weights, fingerprints, and rewrites as queries
    stored     the index of a corpus, made once and kept
    texts      English documents of 300 words, real or made up
    texttruth  fingerprints by the definition, for a sample
    recipes    what the text workloads measure, and what is asked of it
    peers      FAISS
    online, exact, grid, modelled, rotating, building, appending, realtext, text, textbounds
               the workloads
"""
