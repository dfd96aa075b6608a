"""A str key with a lone surrogate was stored; commands that printed it ended in a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.records.arguments import as_keys
from simindex.storage.tables.keys import KeyHeap

BAD = "b\udc80"

ROWS = np.arange(3, dtype=np.uint64)

TEXT = "the quick brown fox jumps over the lazy dog"


def of_bytes(data: bytes) -> KeyHeap:
    """A heap of one key, which nobody has looked at."""
    return KeyHeap(np.array([0, len(data)], np.int64), np.frombuffer(data, np.uint8))


def named(*keys: str) -> simindex.Batch:
    """A batch whose keys were changed after it was made."""
    batch = simindex.Batch(ROWS, keys=["x", "y", "z"])
    assert batch.keys is not None
    batch.keys[:] = keys  # type: ignore[assignment]
    return batch


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.append(ROWS, keys=["a", BAD, "c"]),
        lambda index: index.append(named("a", BAD, "c")),
        lambda index: index.replace(named("a", BAD, "c")),
        lambda index: index.delete(keys=["a", BAD]),
        lambda index: index.ingest(ROWS, keys=["a", BAD, "c"]),
        lambda index: simindex.Batch(ROWS, keys=["a", BAD, "c"]),
        lambda index: index.recipe.batch([TEXT, TEXT], keys=["a", BAD]),
    ],
    ids=["append", "append a batch", "replace", "delete", "ingest", "Batch", "Recipe.batch"],
)
def test_a_key_that_utf8_cannot_hold_is_refused(
    index_path: Path, call: Callable[[Any], object]
) -> None:
    """The error names the row and the remedy, and nothing of the call is kept."""
    options = simindex.IndexOptions(keys=True, recipe=simindex.Recipe())
    with simindex.open(index_path, "n", options=options) as index:
        said = r'row 1 .*correct.*keys="bytes"'
        with pytest.raises(simindex.InvalidBatch, match=said) as refused:
            call(index)
        assert refused.value.data["row"] == 1
        index.commit()
        assert len(index) == 0


def test_a_document_with_such_a_key_is_not_added(index_path: Path) -> None:
    """`seen_or_add`, of a text and of a batch of one."""
    options = simindex.IndexOptions(keys=True, recipe=simindex.Recipe())
    with simindex.open(index_path, "n", options=options) as index:
        for given in (TEXT, simindex.Recipe().batch([TEXT])):
            with pytest.raises(simindex.InvalidBatch, match="row 0"):
                index.seen_or_add(given, BAD)
        assert index.seen_or_add(TEXT, "good") is None
        index.commit()
        assert len(index) == 1


@pytest.mark.parametrize("key", ["\ud800", "\udfff", "\ud83d\ude00", "é" * 40_000])
def test_the_length_of_a_key_is_that_of_its_utf8(key: str) -> None:
    """Two halves in Python are not a pair, and 40,000 characters may be 80,000 bytes."""
    with pytest.raises(simindex.InvalidBatch):
        as_keys([key], None)
    assert as_keys(["é" * 32_767, "\U0001f600", "\0"], None)[1] == "\U0001f600"


@pytest.mark.parametrize("data", [b"\xff", b"\xed\xa0\x80", b"a\xc0\x80"])
def test_a_stored_key_that_is_no_utf8_is_damage(data: bytes) -> None:
    """Of them a surrogate as other programs would write it; keys of bytes may be anything."""
    heap = of_bytes(data)
    with pytest.raises(simindex.CorruptFile, match="keys of some rows are damaged"):
        heap.decoded("str")
    assert heap.decoded("bytes") == [data]


# -- on the shell ----------------------------------------------------------------------------------


def simindex_of(folder: Path, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    """What a command wrote, each argument given as bytes if it is not text."""
    done = subprocess.run(
        [sys.executable, "-m", "simindex", *(
            one if isinstance(one, bytes) else str(one) for one in arguments
        )],
        cwd=folder, capture_output=True, check=False, env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


NAMES = [b"plain.txt", b"caf\xe9.txt", b"caf\\xe9.txt", b"a\\b.txt", b"\\x5cxe9.txt", b"\xff"]
ESCAPED = ["plain.txt", "caf\\xe9.txt", "caf\\x5cxe9.txt", "a\\b.txt", "\\x5cx5cxe9.txt", "\\xff"]
KEYS = [f"docs/{name}" for name in ESCAPED]
"""Each file's own: a name that looks like another one's is escaped, too."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of one text each, all alike."""
    (tmp_path / "docs").mkdir()
    for name in NAMES:
        with open(os.fsencode(tmp_path / "docs") + b"/" + name, "w") as file:  # noqa: PTH123
            file.write(TEXT)
    return tmp_path


def test_files_whose_names_are_no_utf8_keep_names_of_their_own(folder: Path) -> None:
    """Two files never get one key."""
    assert simindex_of(folder, "build", "i.sim", "docs").returncode == 0
    exported = simindex_of(folder, "export", "i.sim").stdout.splitlines()
    assert {json.loads(line)["key"] for line in exported} == set(KEYS)
    asked = simindex_of(folder, "query", "i.sim", "docs", "--json").stdout.splitlines()
    pairs = [(one["query"], one["key"]) for one in map(json.loads, asked)]
    assert sorted(pairs) == sorted((a, b) for a in KEYS for b in KEYS)
    assert simindex_of(folder, "query", "i.sim", b"docs/caf\xe9.txt").stdout.startswith(
        b"docs/caf\\\\xe9.txt\t"
    )
    for command in ("pairs", "clusters"):
        assert len(simindex_of(folder, command, "i.sim").stdout.splitlines()) > len(KEYS) - 1
    deleted = simindex_of(folder, "delete", "i.sim", "--key", "docs/caf\\xe9.txt", "--json")
    assert json.loads(deleted.stdout)["deleted"] == 1


def test_dedup_of_files_whose_names_are_no_utf8(folder: Path) -> None:
    """What is dropped, and what it lost to, are named the same."""
    done = simindex_of(folder, "dedup", "docs", "--audit", "dropped")
    assert done.returncode == 0
    kept = [json.loads(line)["id"] for line in done.stdout.splitlines()]
    dropped = [json.loads(line) for line in (folder / "dropped").read_text().splitlines()]
    assert sorted([*kept, *(one["dropped"] for one in dropped)]) == sorted(KEYS)
    assert {one["lost_to"] for one in dropped} == set(kept)


def test_no_record_with_such_a_key_is_taken(tmp_path: Path) -> None:
    """It is a bad record, which its file and line tell; more of them than are allowed end it."""
    good = json.dumps({"id": "a", "text": TEXT})
    (tmp_path / "in.jsonl").write_text(f'{good}\n{{"id": "\\ud800", "text": "{TEXT}"}}\n')
    (tmp_path / "in.csv").write_bytes(b"id,text\na," + TEXT.encode() + b"\n\xed\xa0\x80,b\n")
    for name, line in (("in.jsonl", 2), ("in.csv", 3)):
        refused = simindex_of(tmp_path, "build", "i.sim", name, "--overwrite")
        assert (refused.returncode, refused.stderr.count(b"\n")) == (4, 1)
        assert f"{name}:{line}: ".encode() in refused.stderr
        built = simindex_of(tmp_path, "build", "i.sim", name, "--max-errors", 1, "--overwrite")
        assert (built.returncode, built.stdout) == (0, b"")
        assert f"{name}:{line}: ".encode() in built.stderr
        assert len(simindex_of(tmp_path, "export", "i.sim").stdout.splitlines()) == 1


@pytest.mark.parametrize("kind", ["str", "bytes"])
def test_no_key_given_to_delete_ends_in_a_traceback(tmp_path: Path, kind: Any) -> None:
    """Bytes are what they are where keys are bytes; elsewhere they are refused in one line."""
    key: Any = b"\xff" if kind == "bytes" else "x"
    with simindex.open(
        tmp_path / "i.sim", "n", options=simindex.IndexOptions(keys=kind)
    ) as index:
        index.append(ROWS[:1], keys=[key])
    done = simindex_of(tmp_path, "delete", "i.sim", "--key", b"\xff", "--json")
    if kind == "bytes":
        assert json.loads(done.stdout)["deleted"] == 1
    else:
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"UTF-8" in done.stderr


def test_no_name_of_an_index_ends_in_a_traceback(tmp_path: Path) -> None:
    """Its path is printed by `stats`, `check` and what refuses it."""
    (tmp_path / "a.txt").write_text(TEXT)
    place = b"i\xff.sim"
    assert simindex_of(tmp_path, "build", place, "a.txt").returncode == 0
    assert json.loads(simindex_of(tmp_path, "stats", place, "--json").stdout)["rows"] == 1
    assert b"i\\udcff.sim" in simindex_of(tmp_path, "stats", place).stdout
    with open(os.fsencode(tmp_path) + b"/" + place + b"/segments/stray", "w"):  # noqa: PTH123
        pass
    for options in ([], ["--json"]):
        found = simindex_of(tmp_path, "check", place, *options)
        assert (found.returncode, b"i\\udcff.sim" in found.stdout) == (0, True)
    assert simindex_of(tmp_path, "build", place, "a.txt").returncode == 3
    assert simindex_of(tmp_path, "build", "i.sim", b"\xff.txt").returncode == 4
