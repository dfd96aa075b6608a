"""`delete` takes rows away by key or id, or does nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from exported import keys_of

import simindex

Run = Callable[..., Any]


def test_rows_are_deleted_by_key(run: Run, keyed: str, objects: Any, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("k1\r\nk2\n\nnone\nk3")
    result = run("delete", keyed, "--key", "k0", "--key", "k9", "--keys-from", "keys")
    assert result.stderr == (
        "simindex: deleted 5 documents; i.sim holds 5 rows\n"
        "simindex: 1 of 6 names is not in i.sim\n"
    )
    assert keys_of(run, objects, keyed) == ["k4", "k5", "k6", "k7", "k8"]
    (answer,) = objects(run("delete", keyed, "--keys-from", "-", "--json", input="k4\n").stdout)
    assert answer == {"deleted": 1, "deleted_rows": 1, "rows": 4}


def test_rows_of_one_key_go_together_and_are_counted(run: Run) -> None:
    with simindex.open("i.sim", "n", options=simindex.IndexOptions(keys="str")) as index:
        index.append(np.arange(3, dtype=np.uint64), keys=["a", "a", "b"])
    assert run("delete", "i.sim", "--key", "a").stderr == (
        "simindex: deleted 1 document (2 rows); i.sim holds 1 row\n"
    )


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
    assert rows == [
        {"id": 1, "fingerprint": "0" * 16}, {"id": 3, "fingerprint": "0" * 15 + "3"},
    ]  # fmt: skip
    run("delete", "i.sim", "--key", "a", code=2)


def test_keys_of_bytes_are_deleted_as_text(run: Run, objects: Any) -> None:
    options = simindex.IndexOptions(keys="bytes")
    with simindex.open("i.sim", "n", options=options) as index:
        index.append(np.arange(2, dtype=np.uint64), keys=[b"caf\xc3\xa9", b"\xff"])
    run("delete", "i.sim", "--key", "café")
    rows = objects(run("export", "i.sim").stdout)
    assert rows == [{"key_hex": "ff", "fingerprint": "0" * 15 + "1"}]


AUDIT = b'{"dropped": "k1", "lost_to": "k2", "distance": 1, "why": "within 3 bits"}\n'


def test_json_lines_are_refused_with_the_way_to_their_keys(
    run: Run, keyed: str, tmp_path: Path
) -> None:
    """An audit has no keys on its lines, and names stored documents as lost to themselves, too."""
    (tmp_path / "au dit.jsonl").write_bytes(AUDIT)
    told = run("delete", keyed, "--keys-from", "au dit.jsonl", code=4).stderr
    assert "au dit.jsonl:1: is a JSON object, not a key; nothing was deleted" in told
    assert "jq -r 'select(.dropped != .lost_to).dropped' 'au dit.jsonl'" in told
    exported = run("export", keyed).stdout
    told = run("delete", keyed, "--keys-from", "-", input=exported, code=4).stderr
    assert "as jq -r .key does" in told
    told = run("delete", keyed, "--keys-from", "-", input='k1\n{"a": 1}\n', code=4).stderr
    assert "-:2: is a JSON object" in told and "jq -r .FIELD does" in told
    for key in ("{}", "{k1}", "{" * 30_000):
        run("delete", keyed, "--keys-from", "-", input=key, code=1)
    with simindex.open(keyed, "r") as index:
        assert len(index) == 10
