"""`delete`, `compact`, `stats`, `check`, `export`: what stands in an index and what goes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.simhash.words import language_stop_words

Run = Callable[..., Any]


@pytest.fixture
def keyed(run: Run, write_jsonl: Callable[..., Path]) -> str:
    """An index of ten documents with keys k0 ... k9, in five segment files."""
    texts = [f"{n} some text that is number {n} of ten" for n in range(10)]
    path = write_jsonl("a.jsonl", [{"id": f"k{n}", "text": texts[n]} for n in range(10)])
    run("build", "i.sim", path, "-q", "--batch-rows", 8, "--commit-every", 2)
    return "i.sim"


def keys_of(run: Run, objects: Any, index: str) -> list[str]:
    return sorted(row["key"] for row in objects(run("export", index).stdout))


def test_rows_are_deleted_by_key(run: Run, keyed: str, objects: Any, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("k1\r\nk2\n\nnone\nk3")
    result = run("delete", keyed, "--key", "k0", "--key", "k9", "--keys-from", "keys")
    assert result.stderr == "simindex: deleted 5 rows; i.sim holds 5\n"
    assert keys_of(run, objects, keyed) == ["k4", "k5", "k6", "k7", "k8"]
    (answer,) = objects(run("delete", keyed, "--keys-from", "-", "--json", input="k4\n").stdout)
    assert answer == {"deleted": 1, "rows": 4}


def test_a_bad_key_file_deletes_nothing(run: Run, keyed: str, tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(b"k1\nk\xff\n")
    assert "keys:2: not UTF-8" in run("delete", keyed, "--keys-from", "keys", code=4).stderr
    run("delete", keyed, "--keys-from", "missing", code=4)
    run("delete", keyed, code=2)
    run("delete", keyed, "--id", "-1", code=2)
    run("delete", "missing", "--id", "1", code=3)
    with simindex.open(keyed, "r") as index:
        assert len(index) == 10


def test_rows_are_deleted_by_id(run: Run, objects: Any, tmp_path: Path) -> None:
    with simindex.open("i.sim", "n") as index:
        ids = np.array([1, 2, 2, 3, 2**64 - 1], dtype=np.uint64)
        index.append(np.arange(5, dtype=np.uint64), ids=ids)
    run("delete", "i.sim", "--id", 2, "--id", 2**64 - 1)
    rows = objects(run("export", "i.sim").stdout)
    assert sorted((row["id"], row["key"], row["fingerprint"]) for row in rows) == [
        (1, None, "0" * 16), (3, None, "0" * 15 + "3"),
    ]  # fmt: skip
    run("delete", "i.sim", "--key", "a", code=2)


def test_keys_of_bytes_are_shown_and_deleted_as_text(run: Run, objects: Any) -> None:
    options = simindex.IndexOptions(keys="bytes")
    with simindex.open("i.sim", "n", options=options) as index:
        index.append(np.arange(2, dtype=np.uint64), keys=[b"caf\xc3\xa9", b"\xff"])
    assert keys_of(run, objects, "i.sim") == ["\\xff", "café"]
    run("delete", "i.sim", "--key", "café")
    assert keys_of(run, objects, "i.sim") == ["\\xff"]


def test_compaction_leaves_one_segment_without_dead_rows(
    run: Run, keyed: str, objects: Any
) -> None:
    run("delete", keyed, "--key", "k1")
    (answer,) = objects(run("compact", keyed, "--full", "--json").stdout)
    assert (answer["segments_before"], answer["segments"]) == (5, 1)
    assert (answer["rows"], answer["dead_rows"]) == (9, 0)
    assert "in " in run("compact", keyed).stderr
    assert len(keys_of(run, objects, keyed)) == 9
    assert run("check", keyed).stdout == ""


def test_slice_lists_are_added_shown_and_dropped(
    run: Run, keyed: str, objects: Any, tmp_path: Path
) -> None:
    (answer,) = objects(run("compact", keyed, "--full", "--structures", "issl", "--json").stdout)
    (file,) = (tmp_path / keyed).rglob("*.issl")
    assert answer["structures"] == {"psm": 0, "issl": file.stat().st_size}
    (held,) = objects(run("stats", keyed, "--json").stdout)
    assert held["structures"] == answer["structures"]
    assert held["segment_list"][0]["structures"] == {"issl": file.stat().st_size}
    table = dict(line.split(maxsplit=1) for line in run("stats", keyed).stdout.splitlines())
    assert table["structures"].startswith("psm, issl ")
    assert run("check", keyed).stdout == ""
    file.write_bytes(file.read_bytes()[:-1])
    assert file.name in run("check", keyed, code=3).stdout
    assert len(keys_of(run, objects, keyed)) == 10
    run("compact", keyed, "--structures", "psm")
    assert list((tmp_path / keyed).rglob("*.issl")) == []
    assert "issl:w=8" in run("compact", keyed, "--structures", "issl:w=9", code=2).stderr


def test_stats_are_a_table_or_an_object(run: Run, keyed: str, objects: Any) -> None:
    table = dict(line.split(maxsplit=1) for line in run("stats", keyed).stdout.splitlines())
    assert table["rows"].startswith("10,")
    assert table["keys"] == "str"
    assert "unit word" in table["recipe"]
    (answer,) = objects(run("stats", keyed, "--json").stdout)
    assert answer["rows"] == 10
    assert answer["recipe"]["unit"] == "word"


def test_export_prints_csv_that_reads_back(run: Run, keyed: str, objects: Any) -> None:
    table = list(csv.DictReader(io.StringIO(run("export", keyed, "--format", "csv").stdout)))
    rows = objects(run("export", keyed, "--json").stdout)
    assert len(rows) == 10
    assert [{name: str(value) for name, value in row.items()} for row in rows] == table


def test_check_finds_damage(run: Run, keyed: str, objects: Any, tmp_path: Path) -> None:
    sound = run("check", keyed)
    assert "no damage in 10 rows" in sound.stderr
    file = next((tmp_path / keyed).rglob("*.rows"))
    data = bytearray(file.read_bytes())
    data[4096] ^= 1
    file.write_bytes(data)
    damaged = run("check", keyed, code=3)
    severity, path, what = damaged.stdout.splitlines()[0].split("\t")
    assert severity == "error"
    assert file.name in path
    assert what
    assert "1 error in 10 rows" in damaged.stderr
    (found,) = objects(run("check", keyed, "--json", code=3).stdout)
    assert found["severity"] == "error"


def test_a_missing_index_is_named_by_every_command(run: Run) -> None:
    for command in ["stats", "check", "compact", "export"]:
        assert "nowhere" in run(command, "nowhere", code=3).stderr


def test_stats_tell_the_recipe_in_one_line(run: Run) -> None:
    options = ("--stop-words", "en", "--ngram", "1,2", "--stemmer", "english")
    run("build", "i.sim", "-", *options, input='{"text": "many foxes jumped"}')
    (line,) = [x for x in run("stats", "i.sim").stdout.splitlines() if x.startswith("recipe")]
    assert "ngram 1,2, weighting tf, seed 0, " in line
    assert f"stop_words ({len(language_stop_words('en')):,}), stemmer english/" in line
    assert "idf" not in line


def test_structures_are_built_listed_and_dropped(
    run: Run, write_jsonl: Callable[..., Path], objects: Any
) -> None:
    """Commas stand in the names of designs as well as between them."""
    texts = [{"id": f"k{n}", "text": f"{n} some text that is number {n} of ten"} for n in range(10)]
    path = write_jsonl("a.jsonl", texts)
    run("build", "i.sim", path, "--batch-rows", 8, "--structures", "psm,bphs:G=5,g=2,bphs:G=4,g=1")

    def held() -> dict[str, int]:
        (answer,) = objects(run("stats", "i.sim", "--json").stdout)
        structures: dict[str, int] = answer["structures"]
        return structures

    assert list(held()) == ["psm", "bphs:G=5,g=2", "bphs:G=4,g=1"]
    assert held()["psm"] == 0 < held()["bphs:G=4,g=1"] <= held()["bphs:G=5,g=2"]
    shown = run("query", "i.sim", "--text", texts[3]["text"], "--method", "bphs:G=5,g=2")
    assert "k3" in shown.stdout
    assert "bphs:G=5,g=2" in shown.stderr
    run("compact", "i.sim", "--structures", "bphs:nested=4x4,r=1")
    assert list(held()) == ["psm", "bphs:nested=4x4,r=1"]
    assert "bphs:nested=4x4,r=1" in run("stats", "i.sim").stdout
    for wrong in ("trie", "bphs:G=5", "psm,,", "bphs:G=4,g=1,bphs:G=4,g=1", "g=2,bphs:G=5", ""):
        assert "structures" in run("compact", "i.sim", "--structures", wrong, code=2).stderr
    assert "G=70" in run("compact", "i.sim", "--structures", "bphs:G=70,g=1", code=2).stderr
    run("build", "i.sim", path, "--append", "--structures", "psm", code=2)
    assert list(held()) == ["psm", "bphs:nested=4x4,r=1"]
    assert run("check", "i.sim").stdout == ""


def test_stats_name_the_hottest_headers_and_fingerprints(run: Run, objects: Any) -> None:
    rows = np.arange(100, dtype=np.uint64) << np.uint64(57)
    rows[:7] = 0xABCD << 48
    with simindex.open("i.sim", "n") as index:
        index.append(rows)
    assert "headers" not in run("stats", "i.sim").stdout
    lines = run("stats", "i.sim", "--skew").stdout.splitlines()
    header = f"{0xABCD:016b}"[:3]
    assert f"{'':<11} {header}  23 rows" in lines
    assert lines[-1] == f"{'':<11} abcd000000000000  7 rows"
    (answer,) = objects(run("stats", "i.sim", "--skew", "--json").stdout)
    assert answer["skew"]["headers"][0] == {"value": header, "rows": 23}
    assert answer["skew"]["fingerprints"] == [{"value": "abcd000000000000", "rows": 7}]


def test_stats_tell_the_recall_that_was_measured(run: Run, objects: Any) -> None:
    with simindex.open("i.sim", "n") as index:
        index.append(np.arange(9, dtype=np.uint64))
        index.commit()
        index.audit(h=2, sample=5)
    assert "recall unknown: the index keeps no weights" in run("stats", "i.sim").stdout
    weights = np.where(np.random.default_rng(1).random((9, 64)) < 0.5, -1, 1).astype(np.float32)
    weights[:] = weights[0]
    weights[np.arange(1, 9), np.arange(1, 9)] *= -1
    bits = np.packbits(weights > 0, axis=1).view(">u8").astype(np.uint64)
    with simindex.open("j.sim", "n") as index:
        index.append(simindex.Batch(bits, weights=weights))
        index.commit()
        measured = index.audit(h=2, sample=5)
    assert measured.matches == 5 * 8
    assert f"recall {measured.recall:.4f} (" in run("stats", "j.sim").stdout
    (answer,) = objects(run("stats", "j.sim", "--json").stdout)
    assert answer["audit"]["rows_with_match"] == 5
