"""Refuses inputs whose documents lack a field that the caller named, perhaps mistyped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from simindex.errors import InvalidInput
from simindex.inputs.fields import MISSING, field_names, field_of

if TYPE_CHECKING:
    from simindex.inputs.document import Document

Item = TypeVar("Item", bound="Document | Sequence[Document]")

LOOKED_THROUGH = 100
"""First documents of which one must have the field."""


def lacks(document: Document, name: str) -> bool:
    """Whether its record has no field of this name; a text file has none."""
    return field_of(document.fields or {}, name) is MISSING


def having(
    documents: Iterable[Item], name: str, option: str, without: Callable[[Item], bool]
) -> Iterator[Item]:
    """The documents; InvalidInput if the first LOOKED_THROUGH, or all of fewer, lack a field.

    The caller named it with `option`. None is given on before one of them has it: most inputs have
    it in the first.
    """
    documents = iter(documents)
    held = []
    for document in islice(documents, LOOKED_THROUGH):
        held.append(document)
        if not without(document):
            break
    else:
        if held:
            first: Any = held[0]  # a document: columns of documents have the field
            raise InvalidInput(
                f"{first.place} has no field {name!r}" + (
                    f", nor has any of the next {len(held) - 1:,}" if len(held) > 1 else ""
                ),
                remedy=f"name another field with {option} (this document has "
                f"{field_names(first.fields or {})}), or leave {option} out",
                path=first.path, line=first.line, option=option, found=name,
            )
    yield from held
    yield from documents
