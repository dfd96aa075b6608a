"""What `query` looks up, a batch at a time, each question with its name.

    --fingerprint HEX     named by its digits
    --text TEXT           text:1, text:2 ...
    INPUT                 documents by their keys; fingerprints by their keys, ids or places
    --index OTHER         the rows of another index, by their keys or ids
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import simindex
from simindex.cli.agreement import require_alike
from simindex.cli.chunks import SkippedReport, chunks, places_of_rows, why_none
from simindex.cli.console import say
from simindex.cli.opening import open_index
from simindex.cli.recipes import recipe_of_questions
from simindex.errors import InvalidOption
from simindex.outputs.columns import key_text
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.cli.batches import Questions
    from simindex.cli.input_options import Reading
    from simindex.inputs.document import Intake


@dataclass(slots=True)
class Asking:
    """All questions of a run to an index that is open."""

    index: simindex.Index
    name: str
    """The index as the caller named it."""
    reading: Reading
    intake: Intake
    inputs: Sequence[str] = ()
    texts: Sequence[str] = ()
    fingerprints: Sequence[list[int]] = ()
    others: Sequence[str] = ()
    command: str = "simindex query"
    """Which asks the index."""
    recipe_of: str | None = None
    """What `--recipe` takes for the recipe of the index; None if it is its name."""
    without: SkippedReport = field(default_factory=SkippedReport)
    _recipe: Any = None
    _of_rows: bool = False
    """Whether the inputs hold fingerprints."""

    def check(self) -> None:
        """Refuses what the index cannot answer, before anything is looked up."""
        self._of_rows = bool(self.inputs) and self.reading.holds_fingerprints(self.inputs)
        if self.texts or (self.inputs and not self._of_rows):
            self._recipe = recipe_of_questions(
                self.index, self.name, "texts cannot be looked up in it",
                "give --fingerprint HEX, or a .hex or .npy file of fingerprints",
            )
        bits = self.index.options.bits
        for words in self.fingerprints:
            if 64 * len(words) != bits:
                raise InvalidOption(
                    f"--fingerprint has {64 * len(words)} bits, and those of {self.name} {bits}",
                    remedy=f"give {bits // 4} hexadecimal digits, as `simindex export` prints them",
                    option="fingerprint", found=64 * len(words), expected=bits,
                )
        for path in self.others:
            with open_index(path, "r") as other:
                require_alike(
                    self.index, self.name, other, path,
                    instead=f"give the files of {path} instead, as in `{self.command} {self.name} "
                    "FILES`, or ", recipe_of=self.recipe_of,
                )

    def batches(self) -> Iterator[Questions[str]]:
        """Names and rows, in the order of the module's list."""
        for words in self.fingerprints:
            yield ["".join(f"{word:016x}" for word in words)], as_row(words)
        if self.texts:
            batch = self._recipe.batch(list(self.texts))
            for skip in batch.skipped:
                why = why_none(self.texts[skip.position], skip.reason)
                say(f"text:{skip.position + 1}: no fingerprint: {why}")
            places = places_of_rows(len(self.texts), batch.skipped)
            yield [f"text:{place + 1}" for place in places], batch
        if self._of_rows:
            self.intake.bits = self.index.options.bits
            for some in self.reading.fingerprints(self.inputs, self.intake):
                named = (key_text(some.name(row)) for row in range(len(some.batch)))
                yield [name or "" for name in named], simindex.Batch(
                    some.batch.rows, sketch=some.batch.sketches
                )
        elif self.inputs:
            yield from self._documents()
        for path in self.others:
            with open_index(path, "r", refresh=False) as other:
                for batch in other.rows():
                    yield names_of(batch), batch

    def _documents(self) -> Iterator[Questions[str]]:
        for chunk in chunks(self.reading.documents(self.inputs, self.intake)):
            batch = self._recipe.batch([document.text for document in chunk])
            self.without.add(chunk, batch.skipped)
            places = places_of_rows(len(chunk), batch.skipped)
            yield [chunk[place].key for place in places], batch


def names_of(batch: simindex.Batch) -> list[str]:
    """Keys, or ids, of the rows of an index."""
    if batch.keys is not None:
        return [key_text(key) or "" for key in batch.keys]
    return [] if batch.ids is None else list(map(str, batch.ids.tolist()))


def as_row(words: list[int]) -> Any:
    """One fingerprint, as `Index.query` takes it."""
    import numpy as np

    row = np.array(words, dtype=np.uint64)
    return row if len(words) == 1 else row[None, :]
