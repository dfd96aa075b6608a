"""What `simindex dedup --verify-text` changes: `python tools/reproduce/verified.py --data DIR`.

Prints a table of docs/explanation/recipes-compared.md. DIR holds collections `NAME.jsonl.zst` with
a text on each line. Needs the extra `zst`, and scipy.

    truth       exact cosines of the weights of the recipe that the run has learned, of every
                document and every kept one before it
    precision   share of dropped documents whose cosine with the one they lost to is the similarity
                or more
    recall      share of documents with such a kept one before them that were dropped
    compared    pairs that were compared by text, and of how many the estimate said the opposite

After the table it prints the processor time of a comparison, of neighbouring documents of the last
collection cut to so many words.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

import simindex
from reproduce import pages
from reproduce.dedup import share
from reproduce.progress import say
from simindex.simhash.vectors import vectors_of

SIMILARITY = 0.9
BLOCK = 256
"""Documents whose cosines are held at once."""

PORTION = 2000
"""Texts whose features are counted at once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did, and how rightly."""

    kept: int
    dropped: int
    right: int
    """Of the dropped ones."""
    expected: int
    """Documents with a kept one before them at the similarity."""
    found: int
    """Of these, dropped ones."""
    summary: dict[str, Any]

    def cells(self) -> list[str]:
        """For a table."""
        compared = "-"
        if "verified" in self.summary:
            compared = f"{self.summary['verified']:,} ({self.summary['overruled']:,})"
        return [
            f"{self.kept:,}", share(self.right, self.dropped), share(self.found, self.expected),
            compared,
        ]


def run(
    file: Path, folder: Path, options: Sequence[str]
) -> tuple[dict[int, int], Any, dict[str, Any]]:
    """What the command drops, place -> place it lost to; its recipe, and its summary."""
    index, audit = folder / "kept.sim", folder / "audit.jsonl"
    # -P: the installed package, not the sources in the current folder.
    command = [sys.executable, "-P", "-m", "simindex", "dedup", str(file), "--json", "--index",
               str(index), "--audit", str(audit), "--similarity", f"{SIMILARITY:g}", *options]
    with (folder / "out.jsonl").open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True, text=True)
    with audit.open(encoding="utf-8") as lines:
        lost = {int(one["dropped"]): int(one["lost_to"]) for one in map(json.loads, lines)}
    with simindex.open(index, "r") as opened:
        recipe = opened.recipe
    return lost, recipe, json.loads(done.stderr.splitlines()[-1])


def weighted(texts: list[str], recipe: Any) -> Any:
    """The weights of the texts as rows of length 1, sparse."""
    from scipy import sparse

    numbers: dict[int, int] = {}
    columns, weights, ends = [], [], [0]
    for start in range(0, len(texts), PORTION):
        some = texts[start : start + PORTION]
        hashes, _, _ = recipe._kernels.features(some)
        found = vectors_of(recipe, some)
        distinct = np.unique(hashes).tolist()  # as the columns number them
        place = np.array([numbers.setdefault(one, len(numbers)) for one in distinct], np.int64)
        columns.append(place[found.columns].astype(np.int32))
        weights.append(found.weights.astype(np.float32))
        ends += (found.starts[1:] + ends[-1]).tolist()
    rows = sparse.csr_matrix(
        (np.concatenate(weights), np.concatenate(columns), np.array(ends, np.int64)),
        shape=(len(texts), len(numbers)),
    )
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1, dtype=np.float64)).ravel())
    return sparse.diags((1 / np.maximum(length, 1e-30)).astype(np.float32)) @ rows


def judged(lost: dict[int, int], rows: Any, summary: dict[str, Any]) -> Outcome:
    """A run against the cosines of all documents with the kept ones before them."""
    count = rows.shape[0]
    least = SIMILARITY - 1e-5  # of float32
    loser = np.array([*lost], np.int64)
    winner = np.array([*lost.values()], np.int64)
    right = 0
    for start in range(0, len(loser), PORTION):
        some = slice(start, start + PORTION)
        cosines = np.asarray(rows[loser[some]].multiply(rows[winner[some]]).sum(axis=1)).ravel()
        right += int((cosines >= least).sum())
    dropped = np.zeros(count, np.bool_)
    dropped[loser] = True
    kept = np.flatnonzero(~dropped)
    columns = rows[kept].T.tocsr()
    expected = np.zeros(count, np.bool_)
    for start in range(0, count, BLOCK):
        block: NDArray[np.float32] = (rows[start : start + BLOCK] @ columns).toarray()
        places = np.arange(start, start + len(block))
        expected[places] = ((block >= least) & (kept[None, :] < places[:, None])).any(axis=1)
    return Outcome(
        len(kept), len(loser), right, int(expected.sum()), int((expected & dropped).sum()), summary
    )


def collection(
    name: str, texts: list[str], widths: Sequence[int], folder: Path
) -> list[list[str]]:
    """Lines of the table."""
    file = folder / f"{name}.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for place, text in enumerate(texts):
            lines.write(json.dumps({"id": place, "text": text}, ensure_ascii=False) + "\n")
    found, rows = [], None
    for width in widths:
        for verified in (False, True):
            options = ["--sketch-bits", str(width), *(["--verify-text"] * verified)]
            with tempfile.TemporaryDirectory(dir=folder) as own:
                lost, recipe, summary = run(file, Path(own), options)
            if rows is None:  # weights do not depend on the sketch
                rows = weighted(texts, recipe)
            outcome = judged(lost, rows, summary)
            say(f"{name}, {width}, verified {verified}: {outcome}")
            found.append([
                name, f"{len(texts):,}", f"{width:,}" if width else "none",
                "by text" if verified else "estimated", *outcome.cells(),
            ])
    return found


def comparison_s(texts: list[str], words: int) -> float:
    """Processor time of comparing two texts of so many words."""
    long = [" ".join(text.split()[:words]) for text in texts if len(text.split()) >= words][:401]
    recipe = simindex.Recipe(ngram=1, weighting="balanced-tfidf").fit(texts)
    one, other = np.zeros(1, np.int64), np.ones(1, np.int64)
    started = time.process_time()
    for pair in pairwise(long):
        vectors_of(recipe, pair).cosines(one, other)
    return (time.process_time() - started) / max(1, len(long) - 1)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--data", type=Path, required=True, help="directory of the collections")
    made.add_argument("--only", nargs="+", metavar="NAME", help="these collections")
    made.add_argument(
        "--bits", type=int, nargs="+", default=[0, 512], help="bits of sketches; 0 and 512"
    )
    made.add_argument("--most", type=int, help="so many documents of each, the first")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    options = parser().parse_args(arguments)
    heads = ["collection", "documents", "sketch", "doubtful pairs", "kept", "precision", "recall",
             "compared (overruled)"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---:|---:|---|" + "---:|" * 4]
    for name in options.only or pages.sources(options.data):
        texts = [one.text for one in pages.documents(options.data, name)][: options.most]
        with tempfile.TemporaryDirectory(prefix="simindex-reproduce-") as folder:
            for cells in collection(name, texts, options.bits, Path(folder)):
                lines.append("| " + " | ".join(cells) + " |")
    print("\n".join(lines), "\n")
    for words in (100, 1000):
        print(f"texts of {words:,} words: {1000 * comparison_s(texts, words):.2f} ms a comparison")
    return 0


if __name__ == "__main__":
    sys.exit(main())
