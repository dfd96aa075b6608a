"""Counts documents of a run that have the id of an earlier one, which makes both one document."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from simindex._kernels import _native
from simindex.arrays import I64
from simindex.cli.console import count
from simindex.inputs.document_columns import Documents

if TYPE_CHECKING:
    from simindex.inputs.document import Document
    from simindex.simhash.feature_columns import FeatureColumn
    from simindex.simhash.features import Column

MOST_DOCUMENTS = 1 << 24
"""Compared at most, in 16 bytes of memory each."""

ENDS = 64
"""Bytes of either end of a text."""

_OF_LENGTH, _ALL_BITS = 0x9E3779B97F4A7C15, (1 << 64) - 1


def ends_of(text: str) -> int:
    """A hash of the length and both ends of a text in UTF-8. One of the whole text takes five times
    as long, a tenth of the time of a run."""
    import mmh3

    data = text.encode("utf-8", "surrogatepass")
    ends = data if len(data) <= 2 * ENDS else data[:ENDS] + data[-ENDS:]
    hashed: int = mmh3.hash64(ends, signed=False)[0] ^ (_OF_LENGTH * len(data) & _ALL_BITS)
    return hashed - ((hashed >> 63) << 64)


def ends_of_each(texts: Column | FeatureColumn) -> I64:
    """`ends_of` each text of a column, which is not decoded."""
    return texts.ends.view(np.int64)


class RepeatedIds:
    """Of the documents of a run; names that are made of a file and a line do not repeat."""

    def __init__(self) -> None:
        self._ids, self._texts = array("q"), array("q")

    def add(self, documents: Iterable[Document]) -> None:
        """Notes ids and texts, as hashes."""
        if len(self._ids) < MOST_DOCUMENTS:
            if isinstance(documents, Documents):
                ids = np.fromiter(map(hash, documents.keys), np.int64, len(documents))
                self._ids.frombytes(ids.tobytes())
                self._texts.frombytes(ends_of_each(documents.texts).tobytes())
                return
            named = [document for document in documents if not document.numbered]
            self._ids.extend([hash(document.key) for document in named])
            self._texts.extend([ends_of(document.text) for document in named])

    def counted(self) -> tuple[int, int]:
        """Documents with the id of an earlier one, and those of them with another text than the
        first."""
        ids = np.frombuffer(self._ids, np.int64)
        order = _native.sort_rows(ids.view(np.uint64))  # equal ones keep their order
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = ids[order[1:]] != ids[order[:-1]]
        texts = np.frombuffer(self._texts, np.int64)[order]
        first = texts[fresh][np.cumsum(fresh) - 1]
        return int(np.count_nonzero(~fresh)), int(np.count_nonzero(texts != first))

    def told(self) -> Iterator[str]:
        """A sentence, where there is one."""
        repeated, other = self.counted()
        if repeated:
            has = "has" if repeated == 1 else "have"
            yield (
                f"{count(repeated, 'document')} {has} the id of an earlier one, {other:,} of them "
                "with another text: documents with the same id count as one, so they are not "
                "listed as near-duplicates of each other; --id-field NAME takes another field"
            )
