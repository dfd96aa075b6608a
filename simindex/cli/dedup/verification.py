"""`--verify-text`: doubtful pairs are decided by the texts of their documents.

    clusters    the documents of doubtful pairs are looked for in the inputs, and kept in a file
    dedup       what is kept is kept in a file, too, as it is read: see `texts.py`

The texts of an index's own earlier documents are where the inputs have them, under the same key
with the same fingerprint. A pair without a text remains as it is estimated, and is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import simindex
from simindex.cli.chunks import chunks, places_of_rows
from simindex.cli.console import count
from simindex.cli.shared_options import Option
from simindex.cli.stored_documents import as_stored
from simindex.errors import InvalidOption
from simindex.inputs.reading import rereadable
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.cli.dedup.texts import KeptTexts
    from simindex.cli.input_options import Reading
    from simindex.pairs.buffer_losses import Nearness
    from simindex.pairs.doubtful_pairs import Verifier
    from simindex.records.clusters import Clusters
    from simindex.records.verification import Verification

NAMES_AT_ONCE = 1 << 14

verify_option: Option = click.option(
    "--verify-text", is_flag=True,
    help="With --similarity: compare the texts of pairs whose estimated similarity leaves a doubt, "
    "and let the exact similarity decide. The texts are kept in a temporary file.",
)


def require_verifiable(
    similarity: float | None, mode: str, inputs: Sequence[str], *, calibrated: bool
) -> None:
    """Refuses `clusters --verify-text` where nothing is doubtful, or nothing can be read again."""
    if similarity is None and not calibrated:
        raise click.UsageError("--verify-text needs --similarity")
    if mode != "star":
        raise click.UsageError(
            f"--verify-text needs --mode star: of {mode}, documents may be far from each other"
        )
    if not inputs:
        raise InvalidOption(
            "--verify-text needs the inputs that the index was built of, since an index does not "
            "store texts", remedy="name them after the index", option="verify_text",
        )
    if not rereadable(inputs):
        raise InvalidOption(
            "--verify-text reads texts from the inputs again, and standard input or a pipe is read "
            "once", remedy="name files or folders", option="verify_text",
        )


def require_doubt(path: str, similarity: float | None) -> None:
    """Refuses texts where the recommendation of an index asks for no similarity."""
    if similarity is None:
        raise InvalidOption(
            f"the recommendation of {path} is a radius, within which nothing is doubtful",
            remedy="leave out --verify-text", option="verify_text",
        )


@dataclass(slots=True)
class LookedFor:
    """The texts of an index's documents, looked for in the inputs that it was built of."""

    index: simindex.Index
    reading: Reading
    inputs: Sequence[str]
    texts: KeptTexts
    changed: int = 0
    """Texts that are others than the index was built of."""

    def __call__(self, asked: Clusters) -> KeptTexts:
        """Reads the inputs once, and keeps the texts of what is asked for."""
        import numpy as np

        digests = np.sort(np.fromiter(self._digests(asked), np.uint64))
        for some in chunks(as_stored(
            self.index, self.reading.documents(self.inputs, self.reading.intake(silent=True))
        )):
            own = np.fromiter((_digest(document.key) for document in some), np.uint64, len(some))
            place = np.minimum(np.searchsorted(digests, own), max(0, len(digests) - 1))
            there = digests[place] == own if len(digests) else np.zeros(len(own), np.bool_)
            self._keep([some[at] for at in np.flatnonzero(there).tolist()])
        return self.texts

    def _digests(self, asked: Clusters) -> Iterator[int]:
        for some in asked.slices(NAMES_AT_ONCE):
            yield from map(_digest, some.keys() or ())

    def _keep(self, documents: list[Any]) -> None:
        """Those whose fingerprint the index has under their keys."""
        recipe = self.index.recipe
        assert recipe is not None  # without one, nothing is asked for
        batch = recipe.batch([document.text for document in documents])
        for row, place in enumerate(places_of_rows(len(documents), batch.skipped)):
            document = documents[place]
            key = document.key.encode() if self.index.options.keys == "bytes" else document.key
            stored = self.index.get(key)
            if stored is not None and _is_among(batch, row, stored):
                self.texts.keep(document.key, document.text)
            else:
                self.changed += 1


def _is_among(batch: simindex.Batch, row: int, stored: simindex.Batch) -> bool:
    same = (stored.rows == batch.rows[row]).all(axis=1)
    if batch.sketches is not None and stored.sketches is not None:
        same &= (stored.sketches[:, :-1] == batch.sketches[row, :-1]).all(axis=1)
    return bool(same.any())


def _digest(key: str | bytes) -> int:
    from simindex.cli.dedup.texts import digest_of

    return digest_of(key)


@dataclass(slots=True)
class Verifying:
    """How a run of `dedup` decides what is doubtful."""

    verifier: Verifier
    texts: KeptTexts
    near: Nearness = field(init=False)
    """With all rows near that may be."""

    @classmethod
    def of(cls, near: Nearness, recipe: Any, folder: Path) -> Verifying:
        """For a run with a similarity, with a file in a temporary folder."""
        from simindex.cli.dedup.texts import KeptTexts
        from simindex.pairs.doubtful_pairs import Verifier
        from simindex.planning.doubt import doubt_of

        assert near.similar is not None  # as was checked
        made = cls(Verifier(doubt_of(near.similar), recipe), KeptTexts(folder))
        made.near = replace(near, similar=made.verifier.doubt.wide)
        return made


def summary_of(told: Verification) -> dict[str, int]:
    """What was compared, as an object."""
    return {
        "verified": told.verified, "verified_kept": told.kept, "verified_dropped": told.dropped,
        "overruled": told.overruled, "unreadable": told.unreadable,
    }


def said_of(told: Verification, changed: int = 0) -> Iterator[str]:
    """What was compared, in words."""
    yield (
        f"{count(told.verified, 'doubtful pair')} compared by text: {told.kept:,} near enough, "
        f"{told.dropped:,} not; the estimate said the opposite of {told.overruled:,}"
    )
    if told.unreadable:
        changes = f", {count(changed, 'text')} changed since the index was built" * bool(changed)
        yield (
            f"{count(told.unreadable, 'doubtful pair')} as estimated: the inputs do not have the "
            f"texts{changes}"
        )
