"""How well the defaults find near-duplicates: `python tools/reproduce/quality.py --data DIR`.

Prints the tables of docs/how-to/choosing-a-recipe.md. DIR holds `*.jsonl.zst` and `scripts/`
with more of them (path, seq and text a line, sorted), and `labelled/`. Needs the extra `zst`.

    pairs       all pairs of a sample; a pair is right if the exact cosine of its tf-idf words is
                0.9 or more (truth.py)
    build       `simindex build` without options, then `Index.pairs()`: F1 over these pairs
    stream      the same from standard input, idf learned from the first --first documents
    dedup       `simindex dedup` without options. Precision: share of dropped documents that are
                right about the one they lost to. Recall: share of the documents with an earlier
                right partner among the kept ones that were dropped
    Recipe()    fingerprints of `simindex.Recipe()`, which learns nothing
    sketches    F1 of what queries for all documents find by `similarity=0.9` (sketches.py)
    minhash     the same of `find_all`, beside MinHash of datasketch (minhash.py); only if asked for
    across      F1 over pairs of different pages, of all paths (across.py); only if asked for
    added       F1 if the bits of the fingerprint counted, too (added.py); only if asked for
    strangers   pairs of a cosine below 0.6 within the radius, in a million such pairs
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray

import simindex
from reproduce import (
    across,
    added,
    lengths,
    minhash,
    minorities,
    pages,
    radii,
    sketches,
    templates,
    truth,
)
from reproduce.progress import say

COSINE = 0.9 - 1e-6
FAR = 0.6
LEAST_WORDS = 100
"""Of the files of --folders, as of the documents of DIR."""

BEFORE = simindex.Recipe(ngram=3, weighting="tf")
BEFORE_RADIUS = 3
"""What the default was before the release, for comparison."""

Pairs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Score:
    """F1 of some pairs, and of what it is made."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


@dataclass(slots=True)
class Sample:
    """Documents of a collection, and the exact cosines of all of their pairs."""

    name: str
    texts: list[str]
    pages: int
    cosines: truth.Cosines

    def score(self, found: Pairs) -> Score:
        """Precision and recall of some pairs (p, 2), a < b."""
        right = float((self.cosines[found[:, 0], found[:, 1]] >= COSINE).sum())
        upper = np.triu(self.cosines >= COSINE, 1)
        return Score(right / max(1, len(found)), right / max(1, int(upper.sum())))

    def strangers(self, found: Pairs) -> float:
        """Pairs of a low cosine among those found, in a million of all such pairs."""
        far = float((self.cosines[found[:, 0], found[:, 1]] < FAR).sum())
        return 1e6 * far / max(1, int(np.triu(self.cosines < FAR, 1).sum()))


def sample(name: str, documents: list[pages.Document], most: int, of_a_path: int, seed: int) -> (
    Sample
):
    """Up to `most` documents of a collection, see `pages.sampled`."""
    chosen = pages.sampled(documents, most, of_a_path, seed)
    texts = [document.text for document in chosen]
    return Sample(name, texts, len({one.path for one in chosen}), truth.cosines(texts))


def versions(name: str, folders: list[Path], pattern: str) -> list[pages.Document]:
    """Files of several versions of one folder: the path in the folder, and the version as seq."""
    found = []
    for seq, folder in enumerate(folders):
        for file in sorted(folder.rglob(pattern)):
            if "site-packages" in file.relative_to(folder).parts or not file.is_file():
                continue
            text = file.read_bytes().decode("utf-8", "replace")
            if len(truth.words(text)) >= LEAST_WORDS:
                found.append(pages.Document(name, str(file.relative_to(folder)), seq, text))
    return found


# what is measured ---------------------------------------------------------------------------------


def _run(arguments: list[str], folder: Path, stdin: Path | None = None) -> None:
    command = [sys.executable, "-m", "simindex", *arguments]
    with (stdin or Path("/dev/null")).open("rb") as given, (folder / "out").open("wb") as out:
        done = subprocess.run(command, stdin=given, stdout=out, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')}")


def _written(texts: list[str], folder: Path) -> Path:
    file = folder / "documents.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for place, text in enumerate(texts):
            lines.write(json.dumps({"id": str(place), "text": text}) + "\n")
    return file


def built(texts: list[str], folder: Path, *options: str, stream: bool = False) -> (
    tuple[Pairs, simindex.Index]
):
    """All pairs of an index that the shell makes of the texts, and the index, closed."""
    file, path = _written(texts, folder), folder / "index.sim"
    inputs = "-" if stream else str(file)
    _run(["build", str(path), inputs, "--overwrite", *options], folder, file if stream else None)
    with simindex.open(path, "r") as index:
        return indexed(index), index


def indexed(index: simindex.Index, h: int | None = None) -> Pairs:
    """The pairs of an index whose keys are places in the sample, (p, 2), a < b."""
    found = [np.empty((0, 2), dtype=np.int64)]
    for some in index.pairs(h=h):
        keys = some.keys()
        if keys is not None and len(some):
            found.append(np.array([list(map(int, keys[0])), list(map(int, keys[1]))]).T)
    return np.sort(np.concatenate(found), axis=1)


def made(texts: list[str], recipe: simindex.Recipe, h: int | None) -> Pairs:
    """All pairs within h of the fingerprints of a recipe."""
    found = simindex.find_all(recipe.batch(texts).rows, h=recipe.h if h is None else h)
    return np.stack([found.a.astype(np.int64), found.b.astype(np.int64)], axis=1)


def deduplicated(of: Sample, folder: Path, *options: str) -> Score:
    """What `simindex dedup` drops, see the module's text."""
    file, audit = _written(of.texts, folder), folder / "audit.jsonl"
    _run(["dedup", str(file), "--audit", str(audit), *options], folder)
    lost = {}
    for line in audit.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        lost[int(record["dropped"])] = int(record["lost_to"])
    right = sum(of.cosines[place, winner] >= COSINE for place, winner in lost.items())
    kept = np.array([place not in lost for place in range(len(of.texts))])
    earlier = np.tril(of.cosines >= COSINE, -1) & kept[None, :]
    due = np.flatnonzero(earlier.any(axis=1))
    found = sum(int(place) in lost for place in due.tolist())
    return Score(right / max(1, len(lost)), found / max(1, len(due)))


@dataclass(frozen=True, slots=True)
class Line:
    """What was measured on one collection."""

    of: Sample
    build: Score
    strangers: float
    stream: Score
    dedup: Score
    unlearned: Score
    unlearned_strangers: float
    before: Score


def measured(of: Sample, folder: Path, first: int) -> Line:
    """Everything of the first table, of one collection."""
    pairs, _ = built(of.texts, folder)
    streamed, _ = built(of.texts, folder, "--idf-first", str(first), stream=True)
    unlearned = made(of.texts, simindex.Recipe(), None)
    return Line(
        of, of.score(pairs), of.strangers(pairs), of.score(streamed), deduplicated(of, folder),
        of.score(unlearned), of.strangers(unlearned),
        of.score(made(of.texts, BEFORE, BEFORE_RADIUS)),
    )


def table(lines: list[Line]) -> str:
    """The first table, in Markdown."""
    rows = [
        "| collection | documents / pages | build | precision / recall | strangers | stream "
        "| dedup | `Recipe()` | strangers | before |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in lines:
        rows.append(
            f"| {line.of.name} | {len(line.of.texts)} / {line.of.pages} | {line.build.f1:.2f} | "
            f"{line.build.precision:.2f} / {line.build.recall:.2f} | {line.strangers:.0f} | "
            f"{line.stream.f1:.2f} | {line.dedup.f1:.2f} | {line.unlearned.f1:.2f} | "
            f"{line.unlearned_strangers:.0f} | {line.before.f1:.2f} |"
        )
    scores: list[Callable[[Line], float]] = [
        lambda one: one.build.f1, lambda one: one.stream.f1, lambda one: one.dedup.f1,
        lambda one: one.unlearned.f1, lambda one: one.before.f1,
    ]
    mean = [f"{np.mean([score(line) for line in lines]):.2f}" for score in scores]
    rows.append(f"| mean | | {mean[0]} | | | {mean[1]} | {mean[2]} | {mean[3]} | | {mean[4]} |")
    return "\n".join(rows)


def labelled(directory: Path, folder: Path) -> Iterator[str]:
    """Of each file of pairs that people know: how many are found, and how many others."""
    import gzip

    for file in sorted(directory.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        place = {record["id"]: number for number, record in enumerate(records)}
        known = Path(str(file).removesuffix(".jsonl.gz") + ".pairs.tsv").read_text("utf-8")
        pairs = {
            tuple(sorted((place[one], place[other])))
            for one, other in (line.split("\t")[:2] for line in known.splitlines() if line)
        }
        texts = [record["text"] for record in records]
        for name, found in (
            ("build", built(texts, folder)[0]), ("`Recipe()`", made(texts, simindex.Recipe(), None))
        ):
            within = set(map(tuple, found.tolist()))
            yield (
                f"- {file.name.removesuffix('.jsonl.gz')}, {name}: {len(within & pairs)} of "
                f"{len(pairs)} labelled pairs, {len(within - pairs)} others"
            )


PARTS = ("collections", "sketches", "radii", "lengths", "minorities", "templates")
ASKED = ("minhash", "across", "added")
"""Parts that need more than the package and its extras, or minutes."""


def _sketches(options: argparse.Namespace) -> str:
    """F1 by the width of a sketch and the share of candidates."""
    heads = [f"{width} bits, {share}" for width in sketches.WIDTHS for share in sketches.SHARES]
    rows = ["| F1 by sketch, share | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for name, documents in collections(options):
        of = sample(name, documents, options.documents, options.of_a_path, options.seed)
        cells = [f"{of.score(found).f1:.3f}" for _, _, found in sketches.by_width(of.texts)]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
        say(rows[-1])
    return "\n".join(rows)


def _minhash(options: argparse.Namespace) -> str:
    """F1 of sketches and of MinHash."""
    found = []
    for name, documents in collections(options):
        chosen = pages.sampled(documents, options.documents, options.of_a_path, options.seed)
        texts = [document.text for document in chosen]
        found.append(minhash.collection(name, texts, [one.path for one in chosen]))
        say(name)
    return minhash.tables(found)


def _added(options: argparse.Namespace) -> str:
    """F1 by the sketch, and with the fingerprint."""
    found = []
    for name, documents in collections(options):
        chosen = pages.sampled(documents, options.documents, options.of_a_path, options.seed)
        found.append((name, added.collection([document.text for document in chosen])))
        say(name)
    return added.table(found)


def _across(options: argparse.Namespace) -> str:
    """F1 over pairs of different pages."""
    found = []
    for name, documents in collections(options):
        for by in across.APART:
            found.append(across.measured(
                name, by, documents, options.seed,
                {"projection": options.projection, "seed": options.recipe_seed},
            ))
            say(found[-1].line())
    return across.table(found)


def _radii(options: argparse.Namespace) -> str:
    """The two tables of `radii`."""
    of_radius, of_documents = [], []
    for name, documents in collections(options):
        chosen = pages.sampled(documents, options.documents, options.of_a_path, options.seed)
        texts = [document.text for document in chosen]
        known = radii.Known(texts, truth.cosines(texts))
        of_radius.append(radii.by_radius(name, known))
        of_documents.append(
            radii.by_documents(name, known, [one.path for one in chosen], options.seed)
        )
    heads = " | ".join(map(str, radii.RADII))
    numbers = " | ".join(map(str, (*radii.DOCUMENTS, "all")))
    return "\n".join([
        f"| F1 by radius | {heads} |", "|---|" + "---:|" * len(radii.RADII), *of_radius, "",
        f"| F1 (strangers) by documents learned from | {numbers} |",
        "|---|" + "---:|" * (len(radii.DOCUMENTS) + 1), *of_documents,
    ])


def parser() -> argparse.ArgumentParser:
    """The command line."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--data", type=Path, help="directory of *.jsonl.zst")
    asked.add_argument(
        "--folders", nargs="+", action="append", default=[], metavar="NAME DIR",
        help="another collection: its name, and a folder for each of its versions",
    )
    asked.add_argument("--glob", default="*.py", help="the files of --folders")
    asked.add_argument("--documents", type=int, default=750, help="of each collection")
    asked.add_argument("--of-a-path", type=int, default=6, help="revisions of a path among them")
    asked.add_argument("--first", type=int, default=100, help="documents that a stream learns from")
    asked.add_argument("--seed", type=int, default=2011)
    asked.add_argument(
        "--projection", default="sign", choices=("sign", "gaussian", "ternary"),
        help="of the recipe; for across",
    )
    asked.add_argument("--recipe-seed", type=int, default=0, help="for across")
    asked.add_argument("--only", choices=(*PARTS, *ASKED))
    return asked


def collections(options: argparse.Namespace) -> Iterator[tuple[str, list[pages.Document]]]:
    """Name and documents of every collection asked for."""
    if options.data is not None:
        for directory in (options.data, options.data / "scripts"):
            for source in pages.sources(directory):
                yield source, list(pages.documents(directory, source))
    for name, *folders in options.folders:
        yield name, versions(name, [Path(folder) for folder in folders], options.glob)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints."""
    options = parser().parse_args(arguments)
    if options.data is None and not options.folders:
        parser().error("give --data DIR or --folders NAME DIR...")
    wanted = (options.only,) if options.only else PARTS
    with tempfile.TemporaryDirectory(prefix="simindex-quality-") as made_folder:
        folder = Path(made_folder)
        if "collections" in wanted:
            lines = []
            for name, documents in collections(options):
                of = sample(name, documents, options.documents, options.of_a_path, options.seed)
                lines.append(measured(of, folder, options.first))
                say(f"{name}: {lines[-1].build.f1:.3f}, Recipe() {lines[-1].unlearned.f1:.3f}")
            print(f"## Collections\n\n{table(lines)}\n", flush=True)
            if options.data is not None and (options.data / "labelled").is_dir():
                print("\n".join(labelled(options.data / "labelled", folder)) + "\n", flush=True)
    if "sketches" in wanted:
        print(f"## Sketches\n\n{_sketches(options)}\n", flush=True)
    if "minhash" in wanted:
        print(f"## Beside MinHash\n\n{_minhash(options)}\n", flush=True)
    if "added" in wanted:
        print(f"## Sketch and fingerprint\n\n{_added(options)}\n", flush=True)
    if "across" in wanted:
        print(f"## Across pages\n\n{_across(options)}\n", flush=True)
    if "radii" in wanted:
        print(f"## Radii\n\n{_radii(options)}\n", flush=True)
    if "lengths" in wanted and options.data is not None:
        print(f"## Lengths\n\n{lengths.tables(options.data, options.seed)}\n", flush=True)
    if "minorities" in wanted and options.data is not None:
        print(f"## Minorities\n\n{minorities.table(options.data, options.seed)}\n", flush=True)
    if "templates" in wanted and options.data is not None:
        print(f"## Templates\n\n{templates.table(options.data)}\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
