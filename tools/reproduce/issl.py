"""[ISSL] on real text: `python tools/reproduce/issl.py --data DIR --out DIR`.

Writes Table 1 and the values of Figures 1 and 2 to OUT/issl.md and draws them as OUT/issl.svg; some
minutes on one core, most of it to read the texts. DIR holds `*.jsonl.zst`: path, seq and text a
line, sorted by path and seq. Needs the extras `plots` and `zst`.

Documents become ternary signatures of 1,024 bits of their tf-idf words. Two collections: every
revision of every page, and one revision of a page, the last. Queries are documents drawn from each
by seed. What slice lists find is counted by brute force; the package, asked the same with
`method="issl"`, must give the same, or the tool ends.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402

import simindex  # noqa: E402
from reproduce import pages, plots  # noqa: E402
from reproduce.progress import say  # noqa: E402
from reproduce.slices import (  # noqa: E402
    AMONG,
    ERRORS,
    PAPER_COVERED,
    RERANKED,
    RESULTS,
    U64,
    WIDTH,
    Curves,
    covered_if_even,
    lists_checked,
    measure,
)
from reproduce.tables import plain, table  # noqa: E402

BITS = 1024
CHUNK = 2000


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--data", type=Path, required=True, help="directory of *.jsonl.zst")
    made.add_argument("--out", type=Path, required=True, help="where table and plot go")
    made.add_argument("--queries", type=int, default=50, help="documents searched for; 50")
    made.add_argument("--revisions", type=int, help="of a path, the first; all of them")
    made.add_argument("--seed", type=int, default=2011)
    return made


# -- signatures ------------------------------------------------------------------------------------


def signatures(
    documents: Callable[[], Iterator[pages.Document]]
) -> tuple[U64, list[tuple[str, str]]]:
    """Ternary signatures of all documents, and (source, page) of each; the texts are read twice."""
    recipe = simindex.Recipe(BITS, "word", 1, "tfidf", projection="ternary")
    recipe = recipe.fit(one.text for one in documents())
    say("idf is learned")
    made, names = [], []
    texts: list[str] = []
    for one in documents():
        names.append((one.source, one.page))
        texts.append(one.text)
        if len(texts) == CHUNK:
            made.append(whole(recipe, texts))
            texts.clear()
    made.append(whole(recipe, texts))
    return np.concatenate(made), names


def whole(recipe: simindex.Recipe, texts: list[str]) -> U64:
    """Signatures of texts; one of a text without words has no bit set."""
    batch = recipe.batch(texts, ids=np.arange(len(texts), dtype=np.uint64))
    rows = np.zeros((len(texts), BITS // 64), dtype=np.uint64)
    rows[np.asarray(batch.ids, dtype=np.int64)] = batch.rows
    return rows


def last_of_each(names: list[tuple[str, str]]) -> list[int]:
    """Places of the last document of every page."""
    return sorted({name: place for place, name in enumerate(names)}.values())


def as_stored(rows: U64) -> U64:
    """Rows in the order a segment has them, which decides between equal scores: by first word."""
    return rows[np.argsort(rows[:, 0], kind="stable")]


# -- the package's own search ----------------------------------------------------------------------


def confirm(rows: U64, queries: Sequence[int], curves: Curves) -> None:
    """Ends the run if the package finds anything else than was counted."""
    with tempfile.TemporaryDirectory(prefix="simindex-reproduce-") as folder:
        options = simindex.IndexOptions(bits=BITS, structures=("psm", f"issl:w={WIDTH}"))
        with simindex.open(Path(folder) / "i.sim", "n", options=options) as index:
            index.append(rows, ids=np.arange(len(rows), dtype=np.uint64))
            index.commit()
            index.compact(full=True)
            asked = np.ascontiguousarray(rows[list(queries)])
            for errors in ERRORS:
                for at, most in enumerate(RERANKED):
                    found = index.top(
                        asked, k=RESULTS, method="issl", max_error=errors, rerank=most
                    )
                    wanted = np.array([one.results[errors, at] for one in curves.queries])
                    if not np.array_equal(found.id.view(np.int64), wanted):
                        raise SystemExit(
                            f"{curves.name}: the package finds other documents with max_error "
                            f"{errors} and rerank {most}"
                        )


# -- tables ----------------------------------------------------------------------------------------


def collections(found: list[Curves]) -> str:
    """What is searched."""
    return table(
        ["collection", "documents", "bits that are 1", "mean distance", "10th nearest",
         "100th nearest"],
        [
            [one.name, f"{one.documents:,}", f"{one.ones:.3f}", f"{one.mean_distance:.0f}",
             f"{one.nth(10):.0f}", f"{one.nth(100):.0f}"]
            for one in found
        ],
    )


def table_1(found: list[Curves]) -> str:
    """Lists checked and share of the collection covered: here, in the paper, and for even bits."""
    even = covered_if_even(BITS // WIDTH)
    return table(
        ["max error", "lists of a slice", "[ISSL]",
         *(head for one in found for head in (one.name, "entries read")), "even bits"],
        [
            [
                str(errors), f"{lists:,}", percent(PAPER_COVERED[errors]),
                *(percent(values[errors]) for one in found for values in (one.covered, one.read)),
                percent(even[errors]),
            ]
            for errors, lists in zip(ERRORS, lists_checked(), strict=True)
        ],
    )


def percent(value: float) -> str:
    """A share with two digits after the point, as the paper has them."""
    return f"{100 * value:.2f}%"


def figure(found: list[Curves], among: int) -> str:
    """Of 10 results, how many are among the true ones, for each R."""
    at = AMONG.index(among)
    return table(
        ["max error", *(f"{one.name}, R = {most:,}" for one in found for most in RERANKED)],
        [
            [str(errors), *(
                plain(value, 2) for one in found for value in one.found[errors, :, at]
            )]
            for errors in ERRORS
        ],
    )


WHY = """\
The paper searches a newspaper's articles; these are documentation, proposals and laws. The lists
checked are the same by definition. The share covered and the overlap depend on:

- **Bits that are not even.** Signatures of TopSig have more 0 bits than 1 bits, the paper says: a
  sum of 0 is a 0 bit, and sums of few words are often 0. Documents here have 100 words or more, so
  nearly half of the bits are 1 (first table). They are not independent, though: frequent words
  pull all signatures of a language the same way, so that a document differs from a query in fewer
  than half of its bits on average (of documents of another language, in half), and shares slices
  with it that even bits would not share (last column).
- **Near-duplicates.** Revisions of a page share most slices: with every revision in the collection
  most of the nearest are found at max error 0 already, whatever the share covered. With one of a
  page the nearest are alike in subject only, as articles are, and it takes more errors, or more
  rows compared by their whole distance.
- **Size.** The share covered is a share, and does not grow with the collection. The tenth nearest
  of more documents is nearer, so that less is enough to find it.

The figures of the paper are drawn, not printed: there are no values to compare with these. A result
that ties with the true 10th or 100th distance counts as among them.
"""


def report(found: list[Curves], queries: int, seed: int) -> str:
    """All tables."""
    parts = [
        ("Collections", collections(found)),
        ("Table 1: share of the collection covered", table_1(found)),
        *(
            (f"Figure {number}: of 10 results, how many are among the true top {among}",
             figure(found, among))
            for number, among in enumerate(AMONG, 1)
        ),
        ("What differs, and why", WHY),
    ]
    return (
        "# Tables of slice lists\n\n"
        f"Written by `tools/reproduce/issl.py`; means over {queries} queries, seed {seed}. "
        f"Signatures have {BITS:,} bits, slices {WIDTH}.\n\n"
        + "\n".join(f"## {title}\n\n{text}" for title, text in parts)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and writes."""
    options = parser().parse_args(arguments)
    sources = pages.sources(options.data)
    if options.queries < 1 or not sources:
        parser().error(
            "--queries is at least 1" if sources else f"no *.jsonl.zst in {options.data}"
        )
    options.out.mkdir(parents=True, exist_ok=True)

    def documents() -> Iterator[pages.Document]:
        for source in sources:
            yield from pages.documents(options.data, source, options.revisions)

    every, names = signatures(documents)
    say(f"{len(every):,} signatures")
    found = []
    for name, rows in (
        ("every revision", every), ("one of a page", every[last_of_each(names)])
    ):
        rows = as_stored(rows)
        rng = np.random.default_rng(options.seed)
        queries = rng.choice(len(rows), min(options.queries, len(rows)), replace=False).tolist()
        found.append(measure(name, rows, queries))
        say(f"{name}: {len(rows):,} documents counted")
        confirm(rows, queries, found[-1])
        say(f"{name}: the package finds the same")
    text = report(found, options.queries, options.seed)
    (options.out / "issl.md").write_text(text, encoding="utf-8")
    plots.slice_lists(found, options.out / "issl.svg")
    say(f"written to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
