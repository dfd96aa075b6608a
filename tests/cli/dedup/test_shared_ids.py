from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from simindex.cli.dedup import shared_ids
from simindex.cli.dedup.marks import Loss
from simindex.cli.dedup.shared_ids import SharedIds
from simindex.inputs.document import Document
from simindex.inputs.document_columns import Documents
from simindex.simhash.features import Column

Run = Callable[..., Any]

TEXTS = (
    "The minister said on Monday that the new railway line will open in spring",
    "Snow is expected in the mountains over the weekend, and strong winds at the coast",
)


def document(key: str, line: int) -> Document:
    return Document(key, f"text {line}", "f.jsonl", line)


@pytest.mark.parametrize("keep", ["first", "longest"])
def test_an_id_of_two_documents_is_told_of(run: Run, write_jsonl: Any, keep: str) -> None:
    """The second one loses to a third: who deletes by the audit would delete the first, too."""
    one = write_jsonl("one.jsonl", [{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[1]}])
    other = write_jsonl("other.jsonl", [{"id": "a", "text": TEXTS[1]}])
    done = run("dedup", one, other, "--keep", keep)
    assert len(done.stdout.splitlines()) == 2
    assert "the id 'a' stands for documents that differ, as in other.jsonl:1" in done.stderr


@pytest.mark.parametrize("text", [TEXTS[0], TEXTS[0] + "."], ids=["copy", "revision"])
def test_copies_under_one_id_are_as_they_should_be(
    run: Run, write_jsonl: Any, text: str
) -> None:
    same = [{"id": "a", "text": TEXTS[0]}, {"id": "a", "text": text}]
    assert "stands for" not in run("dedup", write_jsonl("same.jsonl", same)).stderr


def test_a_copy_of_a_dropped_document_is_not_another_document(run: Run, write_jsonl: Any) -> None:
    """Both copies lose to a third document."""
    rows = [{"id": "a", "text": TEXTS[0]}, {"id": "b", "text": TEXTS[0]}]
    told = run("dedup", write_jsonl("twice.jsonl", [*rows, *rows])).stderr
    assert "dropped 3" in told and "stands for" not in told


def test_no_more_ids_are_remembered_than_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_ids, "REMEMBERED", 3)
    seen = SharedIds()
    for line, key in enumerate(["a", "b", "c", "d", "a"], 1):
        seen.see(document(key, line), None)
    assert list(seen.told()) == []
    seen.see(document("d", 6), Loss("z", 1))
    assert "'d'" in next(seen.told()) and "f.jsonl:6" in next(seen.told())


def test_columns_and_single_documents_are_compared_with_each_other() -> None:
    """Places are those of the column; a document that lost to its own id is passed over."""
    offsets = np.array([0, 1, 2, 3, 4], np.int64)
    texts = Column(np.frombuffer(b"abcd", np.uint8), offsets)
    seen = SharedIds()
    seen.see(document("x", 1), None)
    seen.see_all(Documents("g.jsonl", 7, ["y", "x", "z", "x"], texts), {1: Loss("x", 2)})
    told = next(seen.told())
    assert "'x'" in told and "as in g.jsonl:10:" in told
