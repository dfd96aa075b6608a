"""`dedup --index` knows stored documents again, and gives made-up names to one record each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import simindex

Run = Callable[..., Any]


def text(number: int) -> str:
    return " ".join(f"{number}w{place}" for place in range(8))


def stored_keys(path: str | Path) -> list[str]:
    with simindex.open(path, "r") as index:
        return sorted(str(key) for batch in index.rows() for key in batch.keys or ())


def unnamed(*numbers: int) -> str:
    """Records without an id, in lines of their own."""
    return "".join(json.dumps({"text": text(number)}) + "\n" for number in numbers)


def test_a_line_that_holds_another_record_gets_a_name_of_its_own(run: Run, objects: Any) -> None:
    """A name that simindex makes up never stands for two documents, and is known again."""
    file = Path("log.jsonl")
    for numbers in ((1, 2), (3, 2), (4, 2)):
        file.write_text(unnamed(*numbers))
        printed = run("dedup", "--index", "i.sim", "-d", 0, file).stdout
        assert printed == unnamed(*numbers[: 2 if numbers[0] == 1 else 1])
    names = ["log.jsonl:1", "log.jsonl:1#2", "log.jsonl:1#3", "log.jsonl:2"]
    assert stored_keys("i.sim") == names
    for number, name in ((1, names[0]), (3, names[1]), (4, names[2])):
        file.write_text(unnamed(number))
        with simindex.open("i.sim") as index:
            assert [match.key for match in index.query(text(number))] == [name]
        assert run("dedup", "--index", "i.sim", "-d", 0, file).stdout == ""
        marked = run("dedup", "--index", "i.sim", "-d", 0, "--mark", file).stdout
        assert objects(marked)[0]["near_duplicate_of"] is None, "it is the stored document"
    assert stored_keys("i.sim") == names


def test_a_dropped_record_is_not_listed_under_the_name_of_another(run: Run, objects: Any) -> None:
    Path("log.jsonl").write_text(unnamed(1, 2))
    run("dedup", "--index", "i.sim", "-d", 0, "log.jsonl")
    Path("log.jsonl").write_text(unnamed(2))
    run("dedup", "--index", "i.sim", "-d", 0, "--audit", "a", "log.jsonl")
    (lost,) = objects(Path("a").read_text())
    assert (lost["dropped"], lost["lost_to"]) == ("log.jsonl:1#2", "log.jsonl:2")
    assert lost["dropped_at"] == "log.jsonl:1"


def test_a_document_is_known_again_beside_an_equal_one(run: Run, objects: Any) -> None:
    """`build` stores both; of two rows at distance 0 a query may give the other's name."""
    given = [json.dumps({"id": key, "text": "x y"}) + "\n" for key in "ab"]
    Path("log.jsonl").write_text(unnamed(1, 1) + "".join(given))
    run("build", "i.sim", "log.jsonl")
    marked = run("dedup", "--index", "i.sim", "--mark", "log.jsonl").stdout
    assert [one["near_duplicate_of"] for one in objects(marked)] == [None] * 4
