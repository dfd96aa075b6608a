"""Which documents have the id of an earlier one, against counting in plain Python."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.cli import repeated_ids
from simindex.cli.repeated_ids import RepeatedIds, ends_of, ends_of_each
from simindex.inputs.document import Document
from simindex.inputs.document_columns import Documents
from simindex.simhash.features import columns_of


def document(key: str, text: str, *, numbered: bool = False) -> Document:
    return Document(key, text, "f.jsonl", 1, numbered=numbered)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz")), max_size=12))
def test_every_later_document_of_an_id_is_counted(given_ids: list[tuple[str, str]]) -> None:
    repeated = RepeatedIds()
    first: dict[str, str] = {}
    again = other = 0
    for key, text in given_ids:
        repeated.add([document(key, text)])
        again += key in first
        other += first.setdefault(key, text) != text
    assert repeated.counted() == (again, other)
    assert bool(list(repeated.told())) is bool(again)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.text("xä五 ", max_size=200)), max_size=9))
def test_documents_in_columns_count_as_those_in_lists(given_ids: list[tuple[str, str]]) -> None:
    """Files of both kinds are read in one run."""
    keys, texts = [key for key, _ in given_ids], [text for _, text in given_ids]
    mixed, listed = RepeatedIds(), RepeatedIds()
    columns = columns_of(pa.array(["none", *texts], pa.string())[1:])
    documents = Documents("f.parquet", 1, keys, *(columns or ()))
    for repeated, second in ((mixed, documents), (listed, list(documents))):
        repeated.add(list(documents)[:4])
        repeated.add(second)
    assert mixed.counted() == listed.counted()


@given(st.lists(st.text("xä五", max_size=9) | st.integers(40, 150).map(lambda n: "y" * n + "é")))
def test_a_text_has_the_same_hash_in_a_column(texts: list[str]) -> None:
    (column,) = columns_of(pa.array(["none", *texts], pa.string())[1:]) or ()
    assert ends_of_each(column).tolist() == [ends_of(text) for text in texts]
    assert len({ends_of(text) for text in texts}) == len(set(texts))


def test_names_that_were_made_do_not_count() -> None:
    repeated = RepeatedIds()
    repeated.add([document("f.jsonl:1", "x", numbered=True)] * 2)
    assert repeated.counted() == (0, 0)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_ids, "MOST_DOCUMENTS", 2)
    repeated = RepeatedIds()
    for key in "abab":
        repeated.add([document(key, "x")])
    assert repeated.counted() == (0, 0)
