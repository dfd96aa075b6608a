"""Chunks of documents: order, bounds, and what is said of those without a fingerprint."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.cli import chunks
from simindex.inputs.document import Document
from simindex.inputs.document_columns import Documents
from simindex.simhash.features import columns_of


@given(st.lists(st.integers(0, 9), max_size=8), st.integers(1, 7), st.integers(1, 5))
def test_portions_of_columns_and_documents_keep_order_and_bounds(
    sizes: list[int], most: int, chunk: int
) -> None:
    """A number above 0 is a column of so many documents, 0 a document alone."""
    items: list[Document | Documents] = []
    number = 0
    for size in sizes:
        keys = [str(number + place) for place in range(max(1, size))]
        column = Documents("f", number, keys, *(columns_of(pa.array(keys)) or ()))
        items.append(column if size else column[0])
        number += len(keys)
    group = 0
    found: list[str] = []
    for part, ends in chunks.portions(items, most, 1 << 20, chunk):
        group += len(part)
        assert 0 < len(part) <= chunk and group <= most and ends == (group == most)
        group = 0 if ends else group
        found += [document.text for document in part]
    assert found == [str(place) for place in range(number)]


@pytest.mark.parametrize(
    ("text", "reason", "told"),
    [
        ("", "empty", "empty"), (" \n", "empty", "empty"),
        ("!!!", "empty", "it has no words that count"),
        ("one", "too few features: 1 < 2", "too few features: 1 < 2"),
    ],
)
def test_a_text_of_signs_is_not_called_empty(text: str, reason: str, told: str) -> None:
    assert chunks.why_none(text, reason) == told
