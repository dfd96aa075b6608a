"""How well `simindex dedup` drops near-duplicates: `python tools/reproduce/dedup.py --data DIR`.

Prints the tables of docs/explanation/performance.md. It takes some minutes on one core. DIR holds
`peps.jsonl.zst` (each line has path, seq and text; sorted by path and seq) and
`labelled/articles_*.jsonl.gz` with their `.pairs.tsv`. Needs the extra `zst`, and scipy.

    peps       a document is a duplicate of an earlier one if the cosine of their tf-idf words,
               exact and with the idf of these documents, is 0.9 or more
               precision   share of dropped documents that are duplicates of the one they lost to
               recall      share of duplicates of an earlier kept document that were dropped
    labelled   precision   share of dropped documents that are in a labelled pair
               recall      share of labelled pairs of which one lost to the other, or both to one
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from reproduce import pages, vectors  # noqa: E402
from reproduce.progress import say  # noqa: E402

RECIPES = {
    "3 words, tf": ["--weighting", "tf", "--ngram", "3"],
    "words, tf-idf": ["--weighting", "tfidf", "--ngram", "1"],
}
"""Name -> options of the command."""

COSINE = 0.9

Pairs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Score:
    """What one run dropped, and how rightly."""

    dropped: int
    right: int
    """Dropped ones that should have been."""
    found: int
    expected: int
    """Of how many `found` are: documents, or labelled pairs."""

    def cells(self) -> list[str]:
        """For a table: dropped, precision, recall."""
        return [
            f"{self.dropped:,}", share(self.right, self.dropped), share(self.found, self.expected)
        ]


def share(part: int, whole: int) -> str:
    """A share of three digits, or a dash of nothing."""
    return f"{part / whole:.3f}" if whole else "-"


def audited(file: Path, h: int, options: Sequence[str], folder: Path) -> dict[str, str]:
    """What the command drops: key -> key it lost to."""
    audit = folder / "audit.jsonl"
    # -P: the installed package, not the sources in the current folder.
    command = [sys.executable, "-P", "-m", "simindex", "dedup", str(file), "-d", str(h), "--quiet",
               "--audit", str(audit), *options]
    with (folder / "out.jsonl").open("wb") as out:
        subprocess.run(command, stdout=out, check=True)
    with audit.open(encoding="utf-8") as lines:
        return {one["dropped"]: one["lost_to"] for one in map(json.loads, lines)}


def duplicates(texts: list[str]) -> Pairs:
    """(later, earlier) places of all pairs whose cosine reaches COSINE, sorted; (p, 2)."""
    rows = vectors.weighted(vectors.counts(vectors.word_units(texts), (1,)), "tfidf")
    found = []
    for first, _, cosines in vectors.cosine_blocks(rows):
        a, b = np.nonzero(cosines >= COSINE - 1e-6)
        above = b > a
        found.append(np.stack([b[above] + first, a[above] + first], axis=1))
    pairs = np.concatenate(found).astype(np.int64)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def against_cosines(lost: dict[str, str], pairs: Pairs, documents: int) -> Score:
    """The score of a run whose keys are places of documents."""
    loser = np.array([int(key) for key in lost], np.int64)
    winner = np.array([int(key) for key in lost.values()], np.int64)
    dropped = np.zeros(documents, np.bool_)
    dropped[loser] = True
    expected = np.zeros(documents, np.bool_)
    expected[pairs[~dropped[pairs[:, 1]], 0]] = True
    codes = pairs[:, 0] * documents + pairs[:, 1]
    right = np.isin(loser * documents + winner, codes)
    return Score(
        len(lost), int(right.sum()), int((expected & dropped).sum()), int(expected.sum())
    )


def against_labels(lost: dict[str, str], labelled: list[tuple[str, str]]) -> Score:
    """The score of a run on texts of which some pairs are known to be copies."""
    named = {key for pair in labelled for key in pair}
    found = sum(
        lost.get(a) == b or lost.get(b) == a or (a in lost and lost[a] == lost.get(b))
        for a, b in labelled
    )
    return Score(len(lost), len(named & set(lost)), found, len(labelled))


def table(heads: Sequence[str], scores: dict[int, list[Score]]) -> str:
    """A line for each h, three columns for each run."""
    names = [f"{head}: {part}" for head in heads for part in ("dropped", "precision", "recall")]
    lines = ["| h | " + " | ".join(names) + " |", "|---:|" + "---:|" * len(names)]
    for h, some in scores.items():
        cells = [cell for score in some for cell in score.cells()]
        lines.append(f"| {h} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def peps_part(data: Path, most: int | None, distances: Sequence[int], folder: Path) -> str:
    """All revisions of all pages, or the first `most`."""
    texts = [one.text for one in pages.documents(data, "peps")][:most]
    file = folder / "peps.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for place, text in enumerate(texts):
            lines.write(json.dumps({"id": place, "text": text}, ensure_ascii=False) + "\n")
    say(f"peps: {len(texts):,} documents")
    pairs = duplicates(texts)
    later = len(np.unique(pairs[:, 0]))
    size = (
        f"{len(texts):,} documents; {len(pairs):,} pairs with a cosine of {COSINE} or more, "
        f"{later:,} documents with such an earlier one"
    )
    say(size)
    scores = {}
    for h in distances:
        scores[h] = [
            against_cosines(audited(file, h, options, folder), pairs, len(texts))
            for options in RECIPES.values()
        ]
        say(f"h = {h}: {scores[h]}")
    return f"peps: {size}.\n\n{table(list(RECIPES), scores)}\n"


def labelled_part(data: Path, distances: Sequence[int], folder: Path) -> str:
    """The sets of shuffled sentences with labelled pairs."""
    parts = []
    for file in sorted((data / "labelled").glob("*.jsonl.gz")):
        name = file.name.removesuffix(".jsonl.gz")
        with file.with_name(f"{name}.pairs.tsv").open(encoding="utf-8", newline="") as rows:
            labelled = [(a, b) for a, b in csv.reader(rows, delimiter="\t")]
        documents = int(name.rpartition("_")[2])
        scores = {
            h: [
                against_labels(audited(file, h, options, folder), labelled)
                for options in RECIPES.values()
            ]
            for h in distances
        }
        say(f"{name}: {scores}")
        parts.append(
            f"{name}: {documents:,} documents, {len(labelled)} labelled pairs.\n\n"
            f"{table(list(RECIPES), scores)}\n"
        )
    return "\n".join(parts)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--data", type=Path, required=True, help="directory of the collections")
    made.add_argument(
        "--h", type=int, nargs="+", default=list(range(9)), help="distances; 0 to 8"
    )
    made.add_argument("--most", type=int, help="so many documents of peps, the first")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="simindex-reproduce-") as folder:
        print(peps_part(options.data, options.most, options.h, Path(folder)))
        print(labelled_part(options.data, options.h, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
