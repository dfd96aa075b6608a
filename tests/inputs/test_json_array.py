"""An array of objects gives what its objects give on lines of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex.inputs import json_array
from simindex.inputs.document import Intake
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

Take = Callable[..., Any]

TRICKY = [
    {"id": "a", "text": 'quotes " and \\ and ] } , {'},
    {"id": "b", "text": "Grüße 中文", "more": [[], {}, [1, {"x": "]"}]]},
    {"id": "c", "text": ""},
    {"text": "no id"},
]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 16])
def test_objects_are_documents(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, indent: int | None, chunk: int
) -> None:
    monkeypatch.setattr(json_array, "CHUNK_BYTES", chunk)
    path = tmp_path / "a.json"
    path.write_text("\ufeff \n" + json.dumps(TRICKY, indent=indent) + "\n \n")
    documents, bad, intake = take(path, format="json")
    assert [one.text for one in documents] == [one["text"] for one in TRICKY]
    assert [one.line for one in documents] == [1, 2, 3, 4]
    assert [one.key for one in documents[:3]] == ["a", "b", "c"]
    assert documents[3].key.endswith("a.json:4") and intake.numbered == 1
    assert documents[1].fields == TRICKY[1]
    assert bad == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(
    records=st.lists(st.fixed_dictionaries({"text": st.text(max_size=9), "x": VALUES}), max_size=5),
    indent=st.sampled_from([None, 1]), escaped=st.booleans(), chunk=st.integers(1, 40),
)
@pytest.mark.slow
def test_elements_are_those_that_json_reads(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], indent: int | None,
    escaped: bool, chunk: int,
) -> None:
    path = tmp_path_factory.mktemp("array") / "a.json"
    path.write_text(
        json.dumps(records, indent=indent, ensure_ascii=escaped), encoding="utf-8",
        errors="surrogatepass",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "CHUNK_BYTES", chunk)
        intake = Intake(max_errors=None)
        found = list(read([str(path)], ReadOptions(format="json"), intake))
    expected = [one for one in records if _is_text(one)]
    assert [one.fields for one in found] == expected
    assert len(found) + intake.bad_records >= len(records)


def _is_text(record: Any) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(
    ("content", "texts", "reason"),
    [
        ("[]", 0, None),
        (" [ ] ", 0, None),
        ('[{"text": "a"},]', 1, "a.json:2: not JSON"),
        ('[{"text": "a"}, 5, {"text": "b"}]', 2, "a.json:2: not a JSON object"),
        ('[{"text": "a"}, {"no": 1}]', 1, "a.json:2: has no field 'text'"),
        ('[{"text": "a"}, {"text": "b"}', 1, "a.json:2: truncated: the array is not closed"),
        ('[{"text": "a"}, {"text": "b', 1, "a.json:2: truncated"),
        ('[{"text": "a"}] {"text": "b"}', 1, "a.json:2: not JSON: something follows the array"),
        ('[{"text": "a"}}]', 0, "a.json:1: not JSON: a brace closes"),
        ("[" * 100_000, 0, "a.json:1: truncated"),
        ('[{"text": "a"}, {"text": "' + "b" * 3000 + '"}]', 1, "an element is longer than 1000"),
        ("[" + '{"text": "' + "b" * 3000, 0, "an element is longer than 1000"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, content: str, texts: int,
    reason: str | None,
) -> None:
    monkeypatch.setattr(json_array, "CHUNK_BYTES", 512)
    (tmp_path / "a.json").write_text(content)
    limit = 1000 if reason and "1000" in reason else 1 << 20
    documents, bad, _ = take(tmp_path / "a.json", format="json", max_record_bytes=limit)
    assert len(documents) == texts
    assert [reason in one for one in bad] == ([] if reason is None else [True]), bad
