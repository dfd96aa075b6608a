"""A name that simindex makes is never the id of another document of the same reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simindex.errors import InvalidInput
from simindex.inputs import made_names as made_names_module
from simindex.inputs.document import Document, Intake
from simindex.inputs.made_names import MadeNames
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

Run = Callable[..., Any]

FILES = ("a.jsonl", "b.jsonl")
FORMS = st.builds(
    "{}:{}{}".format, st.sampled_from(FILES), st.integers(1, 6), st.sampled_from(("", "#2", "#3"))
)
RECORDS = st.lists(st.tuples(st.sampled_from(FILES), st.none() | FORMS), max_size=12)


@pytest.mark.parametrize("most", [1, 1 << 16])
@given(records=RECORDS)
def test_made_names_and_ids_are_apart_in_any_order(
    most: int, records: list[tuple[str, str | None]]
) -> None:
    """Of two files, one read after the other; what is refused is the name of a record before."""
    before = made_names_module.MOST_RANGES
    made_names_module.MOST_RANGES = most
    try:
        names = MadeNames()
        made: set[str] = set()
        ids: set[str] = set()
        for file in FILES:
            for line, (_, key) in enumerate((one for one in records if one[0] == file), 1):
                if key is None:
                    name = names.make(file, line)
                    assert name.startswith(f"{file}:{line}")
                    assert name not in made | ids
                    made.add(name)
                elif names.give(key):
                    assert key not in made
                    ids.add(key)
                elif most > 1:
                    assert key.partition("#")[0] in {one.partition("#")[0] for one in made}
    finally:
        made_names_module.MOST_RANGES = before


def write(path: Path, *ids: str | None) -> str:
    records = ({"text": f"text {place}"} | ({"id": key} if key else {})
               for place, key in enumerate(ids))
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def keys(*inputs: str, **options: Any) -> list[str]:
    documents: list[Document] = list(read(inputs, ReadOptions(**options), Intake()))
    return [document.key for document in documents]


@pytest.mark.parametrize("given_in", ["a.jsonl", ".", "../in"])
def test_a_record_without_an_id_makes_way_for_an_id_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_in: str
) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    name = "../in/a.jsonl" if given_in == "../in" else "a.jsonl"
    write(Path("a.jsonl"), f"{name}:2", None, None)
    assert keys(given_in) == [f"{name}:2", f"{name}:2#2", f"{name}:3"]
    write(Path("a.jsonl"), "a.jsonl:2", None)
    assert keys(given_in, origin=str(tmp_path / "in")) == ["a.jsonl:2", "a.jsonl:2#2"]
    assert keys("a.jsonl", origin=str(tmp_path)) == ["a.jsonl:2", "in/a.jsonl:2"]


def test_an_id_that_comes_after_the_name_is_refused_with_the_way_out(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", "x", None)
    other = write(tmp_path / "other.jsonl", f"{one}:1", f"{one}:2")
    with pytest.raises(InvalidInput, match="names a record before it that has no id") as refused:
        keys(one, other)
    assert refused.value.data["line"] == 2
    assert "give that record an id" in str(refused.value.remedy)
    assert keys(other, one) == [f"{one}:1", f"{one}:2", "x", f"{one}:2#2"]


def test_ids_that_no_file_is_named_by_are_not_kept() -> None:
    """So that memory does not grow with ids such as doc:17."""
    names = MadeNames(["in"], lambda name: name.endswith(".jsonl"))
    for key in ("doc:17", "in/doc:17", "in/a.jsonl", "in/a.jsonl:x", "other/a.jsonl:17", ""):
        assert names.give(key)
    assert not names._given
    assert names.give("in/a.jsonl:17") and names._given
