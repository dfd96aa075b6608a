"""What `build` puts into an index, in groups: documents, or fingerprints that were made elsewhere.

    Texts   documents, which the recipe makes fingerprints of; always with keys
    Rows    fingerprints, with keys, with ids, or without names; the index gets no recipe

Groups are read by another thread, and become batches on the main one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

import simindex
from simindex.cli.account import met
from simindex.cli.chunks import (
    CHUNK_DOCUMENTS,
    Chunk,
    SkippedReport,
    characters_of,
    chunk_bytes,
    chunks,
    rows_bytes,
)
from simindex.cli.console import say
from simindex.cli.opening import open_index
from simindex.cli.repeated_ids import RepeatedIds
from simindex.cli.short_texts import ShortTexts, Told
from simindex.cli.stored_documents import Existing, kind_of_names
from simindex.errors import InvalidInput
from simindex.inputs.fingerprints import CHUNK_ROWS
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.cli.input_options import Reading
    from simindex.cli.learned_idf import Lesson
    from simindex.cli.prepared_documents import Prepared
    from simindex.cli.progress import Extent
    from simindex.inputs.document import Intake
    from simindex.inputs.fingerprints import Fingerprints

G = TypeVar("G")


class Contents(Protocol[G]):
    """What a run adds to an index."""

    noun: str
    most: int
    """Documents or fingerprints of a group, at most."""
    without: SkippedReport
    short: ShortTexts | None
    """The short ones among documents."""

    @property
    def intake(self) -> Intake:
        """The account of reading."""

    @property
    def extent(self) -> Extent | None:
        """How much of the inputs was read."""

    @property
    def lesson(self) -> Lesson | None:
        """What idf was learned from, if it was."""

    def groups(self, most: int) -> Iterator[G]:
        """All of it, in groups of at most so many."""

    def options(self, first: G) -> dict[str, Any]:
        """Options of a new index for it, told by the first group."""

    def work(self) -> Callable[[G, int | None], Any]:
        """Makes what `batch` takes, of a group on so many threads. Any thread may call it."""

    def batch(self, group: G, made: Any) -> simindex.Batch:
        """The rows of a group, of which this was made; groups come in their order."""

    def held_bytes(self, group: G) -> int:
        """What a group takes in memory."""

    def admitted(
        self, existing: Existing, index: simindex.Index, group: G, batch: simindex.Batch
    ) -> simindex.Batch:
        """What of them is to be added where the index had rows before."""

    def size(self, group: G) -> tuple[int, int]:
        """How many documents or fingerprints, and how many characters or bytes."""

    def counts(self) -> dict[str, int]:
        """Further counts of a run, by name."""

    def say(self, documents: int) -> None:
        """What is to be told once all was read, of so many documents or fingerprints."""


@dataclass(slots=True)
class Texts:
    """Documents."""

    prepared: Prepared
    added: bool = False
    """Whether they go into an index that is there."""
    without: SkippedReport = field(default_factory=SkippedReport)
    short: ShortTexts | None = None
    repeated: RepeatedIds = field(default_factory=RepeatedIds)
    noun = "document"
    most = CHUNK_DOCUMENTS

    def __post_init__(self) -> None:
        recipe = self.prepared.recipe
        self.short = ShortTexts(recipe, recipe.h, fixed=self.added)

    @property
    def intake(self) -> Intake:
        """See `Contents`, as for all below."""
        return self.prepared.intake

    @property
    def extent(self) -> Extent | None:
        return self.prepared.extent

    @property
    def lesson(self) -> Lesson | None:
        return self.prepared.lesson

    def groups(self, most: int) -> Iterator[Chunk]:
        return chunks(self.prepared.documents, most)

    def options(self, first: Chunk) -> dict[str, Any]:
        return {"keys": "str", "recipe": self.prepared.recipe}

    def work(self) -> Callable[[Chunk, int | None], tuple[simindex.Batch, Told]]:
        assert self.short is not None
        return self.short.work()

    def batch(self, group: Chunk, made: tuple[simindex.Batch, Told]) -> simindex.Batch:
        batch, told = made
        self.made_elsewhere(group, told)
        return batch

    def held_bytes(self, group: Chunk) -> int:
        return chunk_bytes(group)

    def made_elsewhere(self, group: Chunk, told: Told) -> None:
        """Notes what there is to tell of a group, whose batch another thread or process made."""
        assert self.short is not None
        self.repeated.add(group)
        self.short.number += told.short
        self.without.add(group, told.skipped)

    def admitted(
        self, existing: Existing, index: simindex.Index, group: Chunk,
        batch: simindex.Batch,
    ) -> simindex.Batch:
        return existing.admitted(index, group, batch)

    def size(self, group: Chunk) -> tuple[int, int]:
        return len(group), characters_of(group)

    def counts(self) -> dict[str, int]:
        return {"repeated_ids": self.repeated.counted()[0]}

    def say(self, documents: int) -> None:
        assert self.short is not None
        self.prepared.say()
        for line in self.repeated.told():
            say(line)
        self.short.say(documents)


@dataclass(slots=True)
class Rows:
    """Fingerprints."""

    read: Iterator[Fingerprints]
    extent: Extent
    keys: Any = None
    """Kind of the keys, as in `IndexOptions`; None until an index or the first row decides."""
    unchecked: bool = False
    """Whether they are added to rows that a recipe made, and nothing says which made them."""
    others: str = "rows before it"
    """Which rows have names of this kind."""
    without: SkippedReport = field(default_factory=SkippedReport)
    lesson: Lesson | None = None
    short: ShortTexts | None = None
    noun = "fingerprint"
    most = CHUNK_ROWS

    @property
    def intake(self) -> Intake:
        return self.extent.intake

    @classmethod
    def of(
        cls, inputs: Sequence[str], reading: Reading, without: Path, *, bits: int | None,
        append: bool,
    ) -> Rows:
        """Those of some inputs, for a new index of a width or, to `append`, for the one there."""
        intake = reading.intake()
        read = reading.fingerprints(inputs, intake, without)
        rows = cls(read, reading.extent(inputs, intake, without))
        intake.bits = bits
        if append:
            with open_index(without, "r") as index:
                intake.bits, rows.keys = index.options.bits, kind_of_names(index)
                if index.options.sketch_bits or len(index):
                    intake.sketch_bits = index.options.sketch_bits
                rows.others = "those of the index"
                rows.unchecked = index.recipe is not None
        return rows

    def groups(self, most: int) -> Iterator[Fingerprints]:
        for group in self.read:
            for start in range(0, len(group.batch), most):
                part = group.part(start, start + most)
                self._require_names(part)
                yield part

    def _require_names(self, group: Fingerprints) -> None:
        found = _kind_of_names(group.batch)
        wanted = found if self.keys is None else self.keys
        if found != wanted:
            raise InvalidInput(
                f"{group.place(0)}: here rows have {_NAMED[found]}, and {self.others} have "
                f"{_NAMED[wanted]}",
                remedy=f"{_NAMING[wanted]}build another index of these rows", path=group.path,
            )
        self.keys = wanted

    def options(self, first: Fingerprints) -> dict[str, Any]:
        batch = first.batch
        return {
            "keys": _kind_of_names(batch), "bits": batch.bits, "sketch_bits": batch.sketch_bits
        }

    def work(self) -> Callable[[Fingerprints, int | None], None]:
        return lambda group, threads: None

    def batch(self, group: Fingerprints, made: None) -> simindex.Batch:
        return group.batch

    def held_bytes(self, group: Fingerprints) -> int:
        return rows_bytes(group.batch)

    def admitted(
        self, existing: Existing, index: simindex.Index, group: Fingerprints,
        batch: simindex.Batch,
    ) -> simindex.Batch:
        return existing.admitted_rows(index, group)

    def size(self, group: Fingerprints) -> tuple[int, int]:
        return len(group.batch), group.batch.rows.nbytes

    def counts(self) -> dict[str, int]:
        return {}

    def say(self, documents: int) -> None:
        for line in met(self.intake):
            say(line)
        if self.unchecked:
            say(
                "fingerprints do not say which recipe made them, so it was not checked: they are "
                "comparable with the others only if it is the recipe of the index"
            )


_NAMED: dict[Any, str] = {"str": "keys", "bytes": "keys of bytes", False: "ids or no names"}

_NAMING: dict[Any, str] = {
    "str": 'give each row a key, as in {"key": "a.html", "fingerprint": "3c92d228661540d6"}, or ',
    "bytes": 'give each row its key in hexadecimal, as in {"key_hex": "612e", "fingerprint": '
    '"3c92d228661540d6"}, or ',
    False: "",
}
"""How rows get names of a kind, if it takes more than to leave names out."""


def _kind_of_names(batch: simindex.Batch) -> Any:
    if batch.keys is None:
        return False
    return "bytes" if isinstance(batch.keys[0], bytes) else "str"


def require_no_recipe(asked: Sequence[str]) -> None:
    """Refuses options of a recipe, which fingerprints that are read have no use for."""
    if asked:
        typed = ["-d" if name == "h" else "--" + name.replace("_", "-") for name in asked]
        raise click.UsageError(
            f"the inputs hold fingerprints, which are stored without a recipe: leave out "
            f"{', '.join(typed)}"
        )
