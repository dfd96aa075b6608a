"""What takes little on the disk takes little memory, time and disk to work through."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simindex
from simindex import IndexOptions
from simindex.cli import chunks
from simindex.errors import CorruptFile, InvalidBatch, SimindexError
from simindex.inputs.document import Document
from simindex.inputs.reading import read
from simindex.repair import catalog_file, catalog_records
from simindex.repair.catalog_records import CatalogRecords
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.leases import acquire
from simindex.storage.catalog.records import LAST_GENERATION, Head, Run
from simindex.storage.catalog.sealed_values import seal
from simindex.storage.files.durable import link

ROWS = np.arange(40, dtype=np.uint64)

PEAK = """
import resource, sys
from simindex.cli import main
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, file=sys.stderr)
"""


def grown_bytes(*arguments: str) -> tuple[int, int]:
    """The exit code of a command, and by how much its memory grew."""
    ended = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, timeout=300,
        check=False,
    )
    return ended.returncode, int(ended.stderr.split()[-1]) << 10


def small_values(path: Path) -> str:
    """12 lines of 2 MB in some kB, each just within the limit of values: 60 MB each, parsed."""
    line = b'{"text": "a b c", "more": [' + b'{"k":[]},' * 260_000 + b"1]}\n"
    with gzip.open(path / "values.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(12):
            file.write(line)
    return str(path / "values.jsonl.gz")


def long_fields(path: Path) -> str:
    """150 lines of 3 MB, almost none of it text."""
    line = json.dumps({"text": "a b c", "more": "x" * 3_000_000}).encode() + b"\n"
    with gzip.open(path / "fields.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(150):
            file.write(line)
    return str(path / "fields.jsonl.gz")


@pytest.mark.parametrize(
    ("command", "make"), [("build", small_values), ("dedup", long_fields)]
)
def test_documents_with_much_beside_their_text(tmp_path: Path, make: Any, command: str) -> None:
    arguments = {"build": [str(tmp_path / "x.sim")], "dedup": ["--keep", "longest"]}
    code, grown = grown_bytes(command, *arguments[command], make(tmp_path))
    assert code == 0
    assert grown < 400 << 20


def test_many_empty_strings_are_counted_without_being_listed(tmp_path: Path) -> None:
    line = b'{"text": [' + b'"",' * 5_000_000 + b'""]}\n'
    (tmp_path / "strings.jsonl").write_bytes(line)
    code, grown = grown_bytes("build", str(tmp_path / "x.sim"), str(tmp_path / "strings.jsonl"))
    assert code == 4
    assert grown < 200 << 20


def test_chunks_are_bounded_by_what_documents_hold() -> None:
    document = Document("a", "text", "-", 1, raw=bytes(chunks.CHUNK_BYTES // 4))
    assert [len(chunk) for chunk in chunks.chunks([document] * 10)] == [4, 4, 2]


def test_fields_are_those_of_the_line(tmp_path: Path) -> None:
    record = {"id": "k", "text": "t", "more": [1, {"a": None}]}
    (tmp_path / "d.jsonl").write_text(json.dumps(record))
    (document,) = read([str(tmp_path / "d.jsonl")])
    assert document.fields == record
    assert document.held_bytes > len(json.dumps(record))


@pytest.mark.parametrize("deep", [499, 500, 501, 900, 990])
@pytest.mark.parametrize("option", [["--mark"], ["--keep", "highest:s"]])
def test_nesting_is_refused_before_it_is_too_deep_anywhere(
    tmp_path: Path, deep: int, option: list[str]
) -> None:
    line = '{"text":"a b","near_duplicate_of":1,"s":3,"a":%s}' % ("[" * deep + "]" * deep)
    (tmp_path / "d.jsonl").write_text(line)
    code, _ = grown_bytes("dedup", *option, str(tmp_path / "d.jsonl"))
    assert code == (0 if deep < 500 else 4)


# -- the catalog -----------------------------------------------------------------------------------


def with_head(path: Path, change: Any) -> None:
    """An index whose head is what `change` makes of it, sealed."""
    with acquire(path / "catalog", writable=True) as environment:
        catalog = Catalog(environment)
        with catalog.reading() as reading:
            _, head = reading.head()
        with environment.transaction(write=True) as txn:
            txn.put("head", b"head", seal("head", b"head", change(head).encode()))
            txn.commit()


def filled(path: Path) -> None:
    with simindex.open(path, "c", options=IndexOptions(min_merge=0)) as index:
        index.append(ROWS)


@pytest.mark.parametrize("kind", ["pending", "tombstones"])
def test_a_head_names_no_run_twice(index_path: Path, kind: str) -> None:
    filled(index_path)

    def twice(head: Head) -> Head:
        return Head(
            head.generation, head.appended, head.next_run, head.segments, head.pending * 2
            if kind == "pending" else head.pending,
            (Run(0, 1, 1, 1),) * 2 if kind == "tombstones" else (), head.values,
        )

    with_head(index_path, twice)
    with pytest.raises(CorruptFile, match="head cannot be decoded"):
        simindex.open(index_path, "r")


@pytest.mark.parametrize("name", ["generation", "appended", "next_run"])
def test_a_commit_without_numbers_left_changes_nothing(index_path: Path, name: str) -> None:
    filled(index_path)
    last = {"generation": LAST_GENERATION - 1, "appended": 1 << 63, "next_run": 1 << 63}[name]

    def late(head: Head) -> Head:
        told = {"generation": head.generation, "appended": head.appended,
                "next_run": head.next_run, name: last}
        return Head(**told, segments=head.segments, pending=head.pending, values=head.values)

    with_head(index_path, late)
    index = simindex.open(index_path, "w")
    with pytest.raises(SimindexError):
        index.append(ROWS)
        index.commit()
    index.close()
    with simindex.open(index_path, "r") as index:
        assert len(index) == len(ROWS)


def test_deletions_take_what_their_hashes_do(tmp_path: Path) -> None:
    path = tmp_path / "x.sim"
    simindex.open(path, "n", options=IndexOptions(keys="str")).close()
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{i:0100}\n" for i in range(1_000_000)))
    code, grown = grown_bytes("delete", str(path), "--keys-from", str(keys))
    assert code == 1  # none of the keys is there
    assert grown < 160 << 20


def test_deletions_of_one_commit_are_bounded(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.writing.waiting.MAX_DELETIONS", 5)
    filled(index_path)
    with simindex.open(index_path, "w") as index:
        index.delete(ids=ROWS[:3])
        with pytest.raises(InvalidBatch, match="more than 5 deletions in one commit"):
            index.delete(ids=ROWS[3:6])
        index.delete(ids=ROWS[3:5])
        index.commit()
        index.delete(ids=ROWS[5:10])
        index.commit()
        assert len(index) == len(ROWS) - 10


def test_a_value_that_many_nodes_lead_to_is_looked_at_once_a_page(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaf pages, each of whose pointers name one long value with a seal that holds."""
    filled(index_path)
    path = index_path / "catalog" / "data.mdb"
    raw = bytearray(path.read_bytes())
    size = os.sysconf("SC_PAGE_SIZE")
    value = seal("meta", b"k", bytes(60))
    far = len(raw) // size
    long = far.to_bytes(8, "little") + b"\0\0\4\0" + (1).to_bytes(4, "little") + value
    raw += long.ljust(size, b"\0")
    pages = 400
    for number in range(far + 1, far + 1 + pages):
        node = len(value).to_bytes(4, "little") + b"\1\0" + b"\1\0" + b"k"
        node += far.to_bytes(8, "little")
        at = size - len(node) - 1
        pointers = (at - 16) // 2
        page = number.to_bytes(8, "little") + b"\0\0\2\0"
        page += (16 + 2 * pointers).to_bytes(2, "little") + at.to_bytes(2, "little")
        page += at.to_bytes(2, "little") * pointers
        raw += page.ljust(at, b"\0") + node.ljust(size - at, b"\0")
    path.write_bytes(raw)
    looks = counted(monkeypatch, "simindex.repair.catalog_records.checksum")
    found = CatalogRecords.read(path)
    assert found is not None
    assert found.record("meta", b"k") == bytes(60)
    found.close()
    assert pages < len(looks) < 2 * pages


def test_values_that_overlap_are_looked_at_within_a_budget(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many nodes as fit a page."""
    monkeypatch.setattr(catalog_records, "MAX_SUMMED_BYTES", 1 << 16)
    filled(index_path)
    path = index_path / "catalog" / "data.mdb"
    size = os.sysconf("SC_PAGE_SIZE")
    raw = bytearray(path.read_bytes())
    for number in range(len(raw) // size, len(raw) // size + 100):
        pointers = range(size // 2, size - 16, 8)
        page = number.to_bytes(8, "little") + b"\0\0\2\0"
        page += (16 + 2 * len(pointers)).to_bytes(2, "little") + (2048).to_bytes(2, "little")
        page += b"".join(at.to_bytes(2, "little") for at in pointers)
        raw += page.ljust(size // 2, b"\0") + b"\4\0\0\0\0\0\1\0" * (size // 16)
    path.write_bytes(raw)
    looks = counted(monkeypatch, "simindex.repair.catalog_records.checksum")
    found = CatalogRecords.read(path)
    assert found is not None
    found.close()
    assert len(looks) < (4 * len(raw) + (1 << 16)) / 512


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[None]:
    """Grows by one with each call of a function."""
    calls: list[None] = []
    module, _, attribute = name.rpartition(".")
    real = getattr(sys.modules[module], attribute)

    def counting(*given: Any) -> Any:
        calls.append(None)
        return real(*given)

    monkeypatch.setattr(sys.modules[module], attribute, counting)
    return calls


@pytest.mark.parametrize("left", [0, 100, 4_097, 8_200, 12_300, 16_400, 20_485, 30_000])
def test_a_catalog_that_is_cut_while_it_is_read_is_damaged(
    index_path: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    filled(index_path)
    path = index_path / "catalog" / "data.mdb"
    real = catalog_file._metas

    def cutting(fd: int) -> Any:
        found = real(fd)
        os.truncate(path, left)
        return found

    monkeypatch.setattr(catalog_file, "_metas", cutting)
    found = CatalogRecords.read(path)
    assert found is not None
    assert found.breach is not None
    found.close()


def test_a_repair_lists_a_folder_some_times_however_many_strays_are_in_it(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(index_path)
    for number in range(1_000):
        (index_path / "segments" / f"{number:016x}-00000000.rows").touch()
    listed = [counted(monkeypatch, "os.scandir"), counted(monkeypatch, "os.listdir")]
    assert simindex.repair(index_path).rows == len(ROWS)
    assert 0 < sum(map(len, listed)) < 50


# -- output that is read ---------------------------------------------------------------------------


def line_file(path: Path) -> Path:
    path.write_text('{"text": "a b c d e", "id": "1"}\n{"text": "a b c d e", "id": "2"}\n')
    return path


def command(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "simindex", *arguments], text=True, stderr=subprocess.PIPE,
        timeout=60, check=False, **streams,
    )


@pytest.mark.parametrize("name", ["dedup", "fingerprint"])
@pytest.mark.parametrize("named", [False, True])
def test_standard_output_is_no_input(tmp_path: Path, name: str, named: bool) -> None:
    path = line_file(tmp_path / "in.jsonl")
    before = path.read_bytes()
    with path.open("rb") as standard_input, path.open("ab") as output:
        ended = command(
            name, str(path) if named else "-", stdin=standard_input, stdout=output
        )
    assert ended.returncode == 4, ended.stderr
    assert "is where standard output goes" in ended.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("named", [False, True])
def test_an_audit_is_no_input_by_another_name(tmp_path: Path, named: bool) -> None:
    path = line_file(tmp_path / "in.jsonl")
    before = path.read_bytes()
    other = tmp_path / "other.jsonl"
    assert link(path, other)
    with path.open("rb") as standard_input:
        ended = command(
            "dedup", *([str(path)] if named else []), "--audit", str(other),
            stdin=standard_input, stdout=subprocess.DEVNULL,
        )
    assert ended.returncode == 2, ended.stderr
    assert path.read_bytes() == before


def test_messages_that_nobody_can_have_change_nothing(tmp_path: Path) -> None:
    path = line_file(tmp_path / "in.jsonl")
    for number, shell in enumerate(["2>/dev/full", "2>&-"]):
        index = tmp_path / f"{number}.sim"
        ended = subprocess.run(
            ["sh", "-c", f'"{sys.executable}" -m simindex build "$0" "$1" {shell}',
             str(index), str(path)],
            check=False, stdout=subprocess.PIPE, timeout=60,
        )
        assert ended.returncode == 0
        with simindex.open(index, "r") as opened:
            assert len(opened) == 2
            assert opened.check() == []


# -- lists of keys ---------------------------------------------------------------------------------


def test_keys_of_a_list_are_as_long_as_keys_may_be(tmp_path: Path) -> None:
    path = tmp_path / "x.sim"
    longest = "k" * 65_535
    with simindex.open(path, "n", options=IndexOptions(keys="str")) as index:
        index.append(ROWS[:3], keys=["first", longest, "third"])
    keys = tmp_path / "keys"
    keys.write_bytes(b"\xef\xbb\xbffirst\r\n" + longest.encode() + b"\r\n")
    assert command("delete", str(path), "--keys-from", str(keys)).returncode == 0
    with simindex.open(path, "r") as index:
        assert len(index) == 1
    keys.write_text(f"third\n{longest}k\n")
    ended = command("delete", str(path), "--keys-from", str(keys))
    assert ended.returncode == 4
    assert f"{keys}:2: longer than the 65,535 bytes of a key; nothing was deleted" in ended.stderr
    with simindex.open(path, "r") as index:
        assert len(index) == 1


class Sized:
    """Of a length, but nothing to go through."""

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("keys", [memoryview(np.array(5)), np.array("a"), Sized()])
def test_what_cannot_be_gone_through_is_no_sequence_of_keys(index_path: Path, keys: Any) -> None:
    with simindex.open(index_path, "n", options=IndexOptions(keys="str")) as index:
        with pytest.raises(InvalidBatch, match="keys must be a sequence"):
            index.delete(keys=keys)
        with pytest.raises(InvalidBatch, match="keys must be a sequence"):
            index.append(ROWS[:1], keys=keys)


