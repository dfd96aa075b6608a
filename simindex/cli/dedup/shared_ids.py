"""Notices that one id stands for documents that differ, among those that follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from simindex.cli.repeated_ids import ends_of, ends_of_each

if TYPE_CHECKING:
    from simindex.cli.dedup.marks import Loss
    from simindex.inputs import Document, Documents

REMEMBERED = 1 << 16
"""Ids in memory at most, so that it does not grow with the input."""

class SharedIds:
    """What `dedup` says of ids: who deletes by such an id deletes several documents."""

    def __init__(self) -> None:
        self.first: Document | None = None
        """The first document that was found to have the id of another one, and another text."""
        self._seen: dict[str, int] = {}
        """Ids of documents, and `ends_of` the text of each."""

    def see(self, document: Document, loss: Loss | None) -> None:
        """Notes a document and what it lost to. Copies and revisions of one id are as they should
        be: they lose to it.
        """
        if self.first is not None or (loss is not None and loss.key == document.key):
            return
        if not self._is_one(document.key, ends_of(document.text)):
            self.first = document

    def see_all(self, documents: Documents, lost: Mapping[int, Loss]) -> None:
        """The same of columns; `lost` has what some lost to, by their places in these."""
        if self.first is not None:
            return
        ends = ends_of_each(documents.texts)
        for place, (key, found) in enumerate(zip(documents.keys, ends, strict=True)):
            loss = lost.get(place)
            if (loss is None or loss.key != key) and not self._is_one(key, found):
                self.first = documents[place]
                return

    def _is_one(self, key: str, ends: int) -> bool:
        """Whether no other text was seen of an id."""
        if len(self._seen) == REMEMBERED:
            self._seen.clear()
        return self._seen.setdefault(key, ends) == ends

    def told(self) -> Iterator[str]:
        """A sentence, where there is one."""
        if self.first is not None:
            yield (
                f"the id {self.first.key!r:.80} stands for documents that differ, as in "
                f"{self.first.place}: `simindex delete` removes all documents of an id; give each "
                "its own, or name another field with --id-field"
            )
