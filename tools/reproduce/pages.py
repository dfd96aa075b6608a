"""Pages with their revisions, as the sources of `--data DIR` hold them.

    DIR/*.jsonl.zst    one document a line: path, seq (the n-th revision of that path), text

A page is a file's name without its ending, for an index file its folder's name: the same page
stands under several paths after it moved ("pep-0001.txt", "peps/pep-0001.rst") or as several
versions of one documentation ("9.x/routing.md", "10.x/routing.md"): these are not independent.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Document:
    """A revision of a page."""

    source: str
    path: str
    seq: int
    text: str

    @property
    def page(self) -> str:
        """What the document is a revision of, under whatever path."""
        path = PurePosixPath(self.path)
        return path.parent.name if path.stem == "index" else path.stem


def sources(directory: Path) -> list[str]:
    """Names of the sources in a directory, sorted."""
    return sorted(file.name.removesuffix(".jsonl.zst") for file in directory.glob("*.jsonl.zst"))


def documents(directory: Path, source: str, revisions: int | None = None) -> Iterator[Document]:
    """The documents of a source in its order; with `revisions`, those with seq below it."""
    import zstandard

    with (directory / f"{source}.jsonl.zst").open("rb") as raw:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(raw)
        for line in io.TextIOWrapper(reader, encoding="utf-8"):
            record = json.loads(line)
            if revisions is None or record["seq"] < revisions:
                yield Document(source, record["path"], record["seq"], record["text"])


def consecutive(found: list[Document]) -> NDArray[np.int64]:
    """Places of the documents that follow, one place before, the revision they replace."""
    return np.array(
        [
            place
            for place in range(1, len(found))
            if (found[place].path, found[place].seq)
            == (found[place - 1].path, found[place - 1].seq + 1)
        ],
        dtype=np.int64,
    )


def numbered(names: list[str]) -> tuple[NDArray[np.int64], int]:
    """The number of each name, by first occurrence, and how many there are."""
    numbers: dict[str, int] = {}
    return (
        np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64),
        len(numbers),
    )


def sampled(found: list[Document], most: int, of_a_path: int, seed: int) -> list[Document]:
    """Up to `most` documents: paths in random order, of each `of_a_path` evenly spaced revisions.

    Evenly spaced, because consecutive revisions alone are nearly all alike.
    """
    by_path: dict[str, list[Document]] = {}
    for document in found:
        by_path.setdefault(document.path, []).append(document)
    paths = list(by_path)
    chosen: list[Document] = []
    for place in np.random.default_rng(seed).permutation(len(paths)).tolist():
        revisions = by_path[paths[place]]
        wanted = min(of_a_path, len(revisions))
        spaced = np.unique(np.linspace(0, len(revisions) - 1, wanted).round().astype(int))
        if len(chosen) + len(spaced) > most:
            break
        chosen += [revisions[one] for one in spaced.tolist()]
    return chosen
