"""Named workloads on one thread, each compared with a peer: `python tools/bench.py WORKLOAD`.

Prints the machine and a Markdown table; docs/explanation/performance.md holds what was measured,
with the command that made it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import machine, report
from benchmarks.stopwatch import Stopwatch, say

Workload = Callable[[argparse.Namespace, Path, Stopwatch], list[report.Measurement]]

WORKLOADS = {
    "online-psm": (10_000_000, "a million queries with weights in a call, recall 0.95"),
    "assumed-recall": (1_000_000, "recall 0.95 of an index that knows no near-duplicates"),
    "online-single": (10_000_000, "one query in a call: p50 and p99"),
    "online-exact": (1_000_000, "a million exact queries in a call, for each structure"),
    "online-exact-skewed": (1_000_000, "the same with templates among rows and queries; p50, p99"),
    "batch-psm": (60_000_000, "batches of --queries 10000000: all matches, the first; threads"),
    "online-h6": (10_000_000, "within 6 bits: exact, and with weights at recall 0.95"),
    "online-h7": (10_000_000, "the same within 7 bits, without a peer"),
    "similarity": (10_000_000, "with weights and sketches by a similarity, beside exact h = 10"),
    "lookup": (10_000_000, "a header by directory, by bisection and by interpolation"),
    "rotation": (1_000_000, "all pairs in memory by rotation, and how many are missed"),
    "pairs": (1_000_000, "all pairs in memory, of uniform rows and of rows with templates"),
    "chains": (10_000_000, "clusters of shapes that chain: what stars and components keep"),
    "chains-similarity": (10_000_000, "stars by a similarity of shapes that chain; 1 GB"),
    "chains-documents": (1_000_000, "dedup of documents in shapes that chain; 10 M: 15 GB"),
    "chains-texts": (1_000_000, "the same, with doubtful pairs compared by text"),
    "model": (10_000_000, "predicted and measured times of every method"),
    "plan": (6_000_000, "batches: what `simindex plan` predicts, and what they take"),
    "auto-grid": (1_000_000, "auto compared with every single choice, h 1 to 8, recall 0.9 to 1"),
    "topk": (1_000_000, "the 10 nearest of 1024-bit signatures: scan, slice lists, graph indexes"),
    "build-fingerprints": (10_000_000, "append with ids, commit, compact"),
    "append-batches": (20_000_000, "append and commit 100,000 rows at a time; --plot FILE"),
    "expire": (6_000_000, "a sliding window of days: what expires, what merges drop, the disk"),
    "backup": (60_000_000, "a new backup, and one after a commit, on one file system; 4 GB"),
    "shards": (10_000_000, "batches to 1 and 2 shards on Ray, on all cores"),
    "limits": (5_000_000, "where cost may jump as work grows; --cliff"),
    "scale": (100_000_000, "1, 3, 10, 30 and 100 M rows, up to --rows: build, query, open; 13 GB"),
    "open": (60_000_000, "open and first query in a fresh process"),
    "start": (1_000, "import and every command of the shell, in processes of their own"),
    "real-text": (0, "recall on revisions of real pages, --data DIR"),
    "ingest": (50_000, "JSON lines to an index, near-duplicates marked; of --data DIR, or made up"),
    "stream": (9_000_000, "20 GB of JSON lines through a pipe to an index: is memory flat?"),
    "gate": (1_000_000, "a tenth as many documents against an index, a tenth of them copies"),
    "formats": (100_000, "HTML, WET and Parquet to an index, beside what bounds it; of --data DIR"),
    "text": (20_000, "texts of 300 words to fingerprints; of --data DIR, or made up"),
    "sketch-cost": (50_000, "texts to fingerprints, and dedup, with a sketch and without"),
    "text-corpus": (0, "every text of --data DIR to fingerprints"),
    "text-bounds": (20_000, "what bounds text: splitting, hashing, sums, memory"),
}
"""Name -> rows unless --rows says otherwise, and what it is."""


def workload(name: str) -> Workload:
    """The function that measures a workload."""
    from benchmarks import (
        appending,
        assumed,
        backing,
        batches,
        building,
        chained_documents,
        chains,
        exact,
        expiring,
        formats,
        gating,
        grid,
        ingesting,
        limits,
        lookups,
        modelled,
        online,
        pairs,
        planned,
        realtext,
        rotating,
        scale,
        sharding,
        similar,
        similar_chains,
        sketching,
        starting,
        streaming,
        text,
        textbounds,
        topk,
    )

    return {
        "batch-psm": batches.batch_psm,
        "online-psm": online.online_psm,
        "assumed-recall": assumed.assumed_recall,
        "online-single": online.online_single,
        "online-exact": exact.online_exact,
        "online-exact-skewed": exact.online_exact_skewed,
        "online-h6": exact.online_h6,
        "online-h7": exact.online_h7,
        "similarity": similar.similarity,
        "lookup": lookups.lookup,
        "rotation": rotating.rotation,
        "pairs": pairs.pairs,
        "chains": chains.chains,
        "chains-similarity": similar_chains.chains_similarity,
        "chains-documents": chained_documents.chains_documents,
        "chains-texts": chained_documents.chains_texts,
        "model": modelled.model,
        "plan": planned.plan,
        "auto-grid": grid.auto_grid,
        "topk": topk.topk,
        "build-fingerprints": building.build_fingerprints,
        "append-batches": appending.append_batches,
        "expire": expiring.expire,
        "backup": backing.backup,
        "shards": sharding.shards,
        "limits": limits.limits,
        "scale": scale.scale,
        "open": building.open_large,
        "start": starting.start,
        "real-text": realtext.real_text,
        "ingest": ingesting.ingest,
        "stream": streaming.stream,
        "gate": gating.gate,
        "formats": formats.formats,
        "text": text.text,
        "sketch-cost": sketching.sketch_cost,
        "text-corpus": text.text_corpus,
        "text-bounds": textbounds.text_bounds,
    }[name]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    named = "\n".join(f"  {name:20s}{what}" for name, (_, what) in WORKLOADS.items())
    made = argparse.ArgumentParser(
        description=__doc__, epilog=f"workloads:\n{named}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("workload", choices=WORKLOADS, metavar="WORKLOAD")
    made.add_argument("--rows", type=int, help="stored rows, if not the workload's own number")
    made.add_argument("--queries", type=int, default=1_000_000, help="in a batch call")
    made.add_argument("--calls", type=int, default=20_000, help="of one query each")
    made.add_argument(
        "--structure", action="append", metavar="NAME",
        help="of the exact workloads, plan and auto-grid, instead of their own; may be given again",
    )
    made.add_argument(
        "--single", action="store_true", help="auto-grid: one query in a call"
    )
    made.add_argument(
        "--popularity", choices=("power", "even"), default="power",
        help="of templates among skewed rows: one over their place, or all as likely",
    )
    made.add_argument("--repeat", type=int, default=3, help="repetitions; the median counts")
    made.add_argument("--seed", type=int, default=2011)
    made.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall",
        help="cpu: seconds this process used, for a machine that others use too",
    )
    made.add_argument(
        "--peer", choices=("auto", "multihash", "flat", "ivf", "none"), default="auto",
        help="auto: MultiHash up to 20 M rows, BinaryFlat on few queries beyond",
    )
    made.add_argument("--no-peer", dest="peer", action="store_const", const="none")
    made.add_argument("--data", type=Path, help="directory of *.jsonl.zst, of texts")
    made.add_argument(
        "--threads", type=int, default=2, help="text: also measure this many; 1 leaves this out"
    )
    made.add_argument("--dir", type=Path, help="where indexes are made; a temporary directory")
    made.add_argument(
        "--keep", action="store_true", help="leave what was made in --dir, for the next run"
    )
    made.add_argument(
        "--max-error", action="append", type=int, metavar="N",
        help="topk: bits in which a slice may differ, instead of 0, 1 and 2; may be given again",
    )
    made.add_argument("--rerank", type=int, metavar="R", help="topk: rows compared exactly")
    made.add_argument(
        "--graph-rows", type=int, metavar="N",
        help="topk: rows of the sets beside a graph index, a tenth of --rows; 0 leaves them out,"
        " --rows 0 the other set",
    )
    made.add_argument(
        "--nlist", type=int, default=256,
        help="topk: cells of FAISS IVF; 4096, as many rows ask for, take minutes to train",
    )
    made.add_argument(
        "--cliff", action="append", metavar="NAME",
        help="limits: limited, shell, deletion, replaced, followed, shared-bits, templates,"
        " wide-radius, threads or segments; may be given again",
    )
    made.add_argument(
        "--format", choices=("html", "wet", "parquet"), help="formats: only this one"
    )
    made.add_argument("--plot", type=Path, help="append-batches: draw the times, as SVG")
    made.add_argument("--json", type=Path, help="also write the measurements to this file")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a workload."""
    options = parser().parse_args(arguments)
    if options.rows is None:
        options.rows = WORKLOADS[options.workload][0]
    if min(options.repeat, options.queries, options.calls) < 1 or options.rows < 0:
        parser().error("--rows, --queries, --calls and --repeat are whole numbers above 0")
    if options.keep and options.dir is None:
        parser().error("--keep needs --dir")
    cores = len(os.sched_getaffinity(0))
    machine.pin_to_one_core()
    line = machine.machine_line(cores)
    say(line)
    if options.dir is not None:
        options.dir.mkdir(parents=True, exist_ok=True)
    watch = Stopwatch(options.repeat, options.clock)
    if options.keep:
        measured = workload(options.workload)(options, options.dir, watch)
    else:
        with tempfile.TemporaryDirectory(prefix="simindex-bench-", dir=options.dir) as place:
            measured = workload(options.workload)(options, Path(place), watch)
    print(f"{line}\n\n{report.markdown(measured)}")
    if options.json is not None:
        content = {"machine": line, "measurements": [one.to_dict() for one in measured]}
        options.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
