"""Hand-made index directories: every checksum holds, and what they say is a lie.

Each is read in every way, and most are written to, in a child with 256 MB and 20 s: typed errors,
or right answers; nothing outside the directory is read or written, and no code runs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import struct
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lmdb
import msgpack
import numpy as np
import pytest
from reliability.damage import Case, run_child
from reliability.forgery import (
    Forged,
    agree,
    forge,
    forge_head,
    forge_named,
    forge_record,
    forge_run,
    forge_value,
    in_parts,
    structure_agrees,
)
from reliability.specimens import Specimen, make

import simindex
from simindex import Recipe
from simindex.errors import SimindexError
from simindex.repair.catalog_file import DATABASE
from simindex.repair.segment_remains import SegmentRemains
from simindex.storage.catalog.pages import META
from simindex.storage.catalog.records import encode_pending
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import PAGE_BYTES, open_envelope
from simindex.storage.files.envelope_writer import EnvelopeWriter, SectionSpec, reads_back
from simindex.storage.tables.keys import KeyHeap
from simindex.storage.tables.reservoir import Reservoir
from simindex.storage.tables.structure import DESCRIPTION
from simindex.storage.tables.table import sort_table

# Forks are what is tested here; from Python 3.12 on they warn of the threads that numpy keeps.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

HUGE = (1 << 61) + 1


@pytest.fixture(scope="module", params=["tiny", "keyed"])
def specimen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Specimen:
    return make(tmp_path_factory.mktemp("specimen"), request.param)


@pytest.fixture
def path(specimen: Specimen, tmp_path: Path) -> Path:
    """A copy of an index, in a directory of its own."""
    copy = tmp_path / "case" / "index"
    shutil.copytree(specimen.path, copy)
    for stray in specimen.strays:
        (copy / stray).unlink()
    return copy


def outcome(specimen: Specimen, path: Path, *, writer: bool = True) -> dict[str, Any]:
    """What a child met: no signal, no hang, no error but typed ones."""
    found = run_child(Case(0, specimen, "hostile", "", "hostile", path), drop=not writer)
    assert found["signal"] == 0
    assert not found["hang"]
    assert found["untyped"] == []
    return found


def require_safe(specimen: Specimen, path: Path, *, writer: bool = True) -> dict[str, Any]:
    """The same, and every answer was right."""
    found = outcome(specimen, path, writer=writer)
    assert found["wrong"] == []
    return found


# -- files of a segment ---------------------------------------------------------------------------


def value_of(forged: Forged, kind: int, name: str, value: int) -> None:
    for place, entry in enumerate(forged.true_table):
        if int(entry["kind"]) == kind:
            forged.table[name][place] = value


def in_header(name: str, value: int) -> Callable[[Forged], None]:
    def change(forged: Forged) -> None:
        forged.header[name] = value

    return change


def in_table(kind: int, name: str, value: int) -> Callable[[Forged], None]:
    return lambda forged: value_of(forged, kind, name, value)


def rows_that_wrap(forged: Forged) -> None:
    forged.header["rows"] = HUGE
    for kind in (1, 2):
        value_of(forged, kind, "count", HUGE)


def sections_over_each_other(forged: Forged) -> None:
    value_of(forged, 2, "offset", int(forged.true_table["offset"][0]))


HEADERS: dict[str, Callable[[Forged], None]] = {
    "rows that wrap": rows_that_wrap,
    "count that wraps": in_table(2, "count", HUGE),
    "count of no file": in_table(1, "count", (1 << 64) - 1),
    "item size 0": in_table(1, "itemsize", 0),
    "item size huge": in_table(1, "itemsize", (1 << 32) - 1),
    "offset that wraps": in_table(2, "offset", (1 << 64) - PAGE_BYTES),
    "offset in a page": in_table(2, "offset", PAGE_BYTES + 8),
    "sections over each other": sections_over_each_other,
    "kind twice": in_table(2, "kind", 1),
    "kind unknown": in_table(2, "kind", 77),
    "chunks": in_table(1, "chunks", 1 << 40),
    "rows": in_header("rows", 1 << 40),
    "no rows": in_header("rows", 0),
    "bits": in_header("bits", (1 << 32) - 64),
    "no bits": in_header("bits", 0),
    "odd bits": in_header("bits", 63),
    "sections": in_header("sections", (1 << 32) - 1),
    "no sections": in_header("sections", 0),
    "chunk bytes": in_header("chunk_bytes", 0),
    "file bytes": in_header("file_bytes", 1 << 62),
    "checksum offset": in_header("checksum_offset", (1 << 64) - 64),
    "horizon": in_header("horizon", (1 << 64) - 1),
}


@pytest.mark.parametrize("lie", HEADERS)
def test_headers_that_lie_are_refused(specimen: Specimen, path: Path, lie: str) -> None:
    """In the rows, with the catalog's record made to agree; and in the tables beside them."""
    for suffix in (".rows", ".bphs"):
        file = sorted((path / "segments").glob(f"*{suffix}"))[0]
        forged = Forged(file)
        HEADERS[lie](forged)
        footer = forged.save()
        if suffix == ".rows":
            agree(path, file.name, footer, int(forged.header["rows"][0]))
    found = require_safe(specimen, path, writer=lie in ("rows that wrap", "bits"))
    assert found["errors"], "nothing was refused"


def test_offsets_of_keys_are_bounded(path: Path, specimen: Specimen) -> None:
    """Negative, falling and wild ones, with checksums that hold."""
    if not specimen.keyed:
        pytest.skip("an index without keys has none")
    file = sorted((path / "segments").glob("*.rows"))[0]
    clean = file.read_bytes()
    for place, value in ((3, -5), (3, 1 << 62), (0, -(1 << 63)), (10, 0), (-1, 1 << 40)):
        file.write_bytes(clean)
        forged = Forged(file)
        forged.section(3, "<i8")[place] = value
        agree(path, file.name, forged.save(), int(forged.header["rows"][0]))
        outcome(specimen, path, writer=False)
        with_errors(path)


def with_errors(path: Path) -> None:
    """`check` has something to say, or the index cannot be opened."""
    try:
        with simindex.open(path) as index:
            assert [f for f in index.check() if f.severity == "error"]
    except SimindexError:
        pass


def test_rows_that_are_not_sorted_are_found_and_followed_nowhere(
    path: Path, specimen: Specimen
) -> None:
    file = sorted((path / "segments").glob("*.rows"))[0]
    forged = Forged(file)
    words = forged.section(1, "<u8")
    words[:] = words[::-1].copy()
    agree(path, file.name, forged.save(), int(forged.header["rows"][0]))
    with_errors(path)
    outcome(specimen, path)


def test_slice_lists_that_lead_beyond_the_rows_are_bounded(path: Path, specimen: Specimen) -> None:
    files = sorted((path / "segments").glob("*.issl"))
    if not files:
        pytest.skip("an index without slice lists")
    for kind, value in ((1, 0xFFFFFFFF), (2, 0xFFFFFFFF)):
        forged = Forged(files[0])
        forged.section(kind, "<u4")[3::5] = value
        structure_agrees(path, files[0].name, forged.save())
        outcome(specimen, path, writer=False)
        with_errors(path)


# -- records of the catalog -----------------------------------------------------------------------


def set_at(*places: int, value: Any) -> Callable[[list[Any]], Any]:
    def change(record: list[Any]) -> list[Any]:
        inner = record
        for place in places[:-1]:
            inner = inner[place]
        inner[places[-1]] = value
        return record

    return change


def structure_twice(record: list[Any]) -> list[Any]:
    record[5] = [record[5][0], *record[5]]
    return record


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\x90"


WIDE = b"\xdd" + (1 << 20).to_bytes(4, "big") + b"\x80" * (1 << 20)
"""An array of a million empty maps: 1 MB that would be 70."""

RECORDS: dict[str, Callable[[list[Any]], Any]] = {
    "rows 2^40": set_at(0, value=1 << 40),
    "rows below 0": set_at(0, value=-1),
    "rows a text": set_at(0, value="many"),
    "rows none": set_at(0, value=None),
    "horizon": set_at(1, value=(1 << 64) - 1),
    "bytes": set_at(2, value=1 << 63),
    "header bits 32": set_at(4, value=32),
    "header bits 30": set_at(4, value=30),
    "header bits 99": set_at(4, value=99),
    "structure twice": structure_twice,
    "design of many tables": set_at(5, 0, 0, value="bphs:G=64,g=32"),
    "design of no end": set_at(5, 0, 0, value="bphs:G=4096,g=2048"),
    "nested design": set_at(5, 0, 0, value="bphs:nested=64x64x64x64"),
    "structure unknown": set_at(5, 0, 0, value="trie:depth=9"),
    "structure a number": set_at(5, 0, 0, value=7),
    "structure in another place": set_at(5, 0, 1, value="../../../etc/passwd"),
    "structure with a slash": set_at(5, 0, 1, value="a/b.bphs"),
    "first table": set_at(5, 0, 4, value=1 << 40),
    "widths": set_at(5, 0, 5, value=[32] * 60_000),
    "widths below 0": set_at(5, 0, 5, value=[-1]),
    "not a list": lambda record: 7,
    "a map": lambda record: {"rows": 1},
    "empty": lambda record: [],
    "deep": lambda record: nested(900),
    "very deep": lambda record: nested(100_000),
    "wide": lambda record: WIDE,
    "no msgpack": lambda record: b"\xc1",
}


@pytest.mark.parametrize("lie", RECORDS)
def test_records_that_lie_are_refused(specimen: Specimen, path: Path, lie: str) -> None:
    segment = sorted((path / "segments").glob("*.rows"))[0].name
    forge_record(path, segment, RECORDS[lie])
    found = require_safe(specimen, path, writer=False)
    assert found["errors"], "nothing was refused"


def other_name(name: str) -> Callable[[list[Any]], Any]:
    def change(head: list[Any]) -> list[Any]:
        head[2][0][0] = name
        return head

    return change


def same_twice(head: list[Any]) -> list[Any]:
    head[2].append(head[2][0])
    return head


HEADS: dict[str, Callable[[list[Any]], Any]] = {
    "version": set_at(0, value=2),
    "generation below 0": set_at(1, 0, value=-1),
    "generation a text": set_at(1, 0, value="1"),
    "generation huge": set_at(1, 0, value=(1 << 64) - 1),
    "next run huge": set_at(1, 2, value=(1 << 64) - 1),
    "a name with ..": other_name("../../../../etc/passwd"),
    "a name with /": other_name("a/0000000000000001-00000000.rows"),
    "a name with a line": other_name("0000000000000001-00000000.rows\n"),
    "a name of bytes": other_name("\x00" * 30),
    "a segment that is not": other_name("0000000000000001-00000000.rows"),
    "a segment twice": same_twice,
    "runs": set_at(3, value=[[1, 1, 1, 1]]),
    "runs of texts": set_at(3, value=[["a", "b", "c", "d"]]),
    "a run short": set_at(4, value=[[1]]),
    "a map": lambda head: {"a": 1},
    "nothing": lambda head: b"",
    "nested": lambda head: nested(2000),
    "wide": lambda head: WIDE,
    "a number": lambda head: 1 << 60,
}


@pytest.mark.parametrize("lie", HEADS)
def test_heads_that_lie_are_refused(specimen: Specimen, path: Path, lie: str) -> None:
    before = head_rows(path)
    forge_head(path, HEADS[lie])
    believed = head_rows(path) != before
    assert require_safe(specimen, path)["errors"] or not believed


def head_rows(path: Path) -> int:
    try:
        with simindex.open(path) as index:
            return len(index)
    except SimindexError:
        return -1


@pytest.mark.parametrize(
    "lie",
    [
        {"bits": 1 << 40}, {"bits": -64}, {"bits": "64"}, {"structures": ["bphs:G=99,g=50"]},
        {"structures": "psm"}, {"batch_rows": 0}, {"keys": "pickle"}, {"unknown": 1},
        {"allow_remote": 3}, {"reservoir_rows": 1 << 60}, [], 7, None,
    ],
    ids=str,
)
def test_options_that_lie_are_refused(specimen: Specimen, path: Path, lie: Any) -> None:
    with simindex.open(path) as index:
        options = index.options.to_dict()
    made = {**options, **lie} if isinstance(lie, dict) else lie
    forge_value(path, "options", msgpack.packb(made))
    assert require_safe(specimen, path, writer=False)["errors"]


@pytest.mark.parametrize("name", ["reservoir", "audit", "machine"])
@pytest.mark.parametrize(
    "payload",
    [
        b"", b"\xc1", nested(3000), msgpack.packb({"a": [1] * 1000}),
        msgpack.packb({"recall": float("nan"), "rows": "many"}),
        HUGE.to_bytes(8, "little") + (1).to_bytes(4, "little") + bytes(4),
        (1).to_bytes(8, "little") + ((1 << 32) - 1).to_bytes(4, "little") + bytes(100),
    ],
    ids=range(7),
)
def test_values_that_lie_hurt_nobody(
    specimen: Specimen, path: Path, name: str, payload: bytes
) -> None:
    forge_value(path, name, payload)
    require_safe(specimen, path)


@pytest.mark.parametrize("count", [0, 2, (1 << 32) - 1])
def test_values_in_more_parts_than_there_are_are_refused(
    specimen: Specimen, path: Path, count: int
) -> None:
    whole = in_parts(msgpack.packb({}), count)
    forge_named(path, "meta", b"options", whole, 5, "options")
    assert require_safe(specimen, path, writer=False)["errors"]


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("value", [(1 << 61) + 1, (1 << 32) - 1, 0, 1 << 20])
def test_pending_runs_that_lie_are_refused(
    specimen: Specimen, path: Path, place: int, value: int
) -> None:
    """Rows, words, keyed, key bytes and reservoir bytes of its header."""
    if place in (1, 2) and value >= 1 << 32:
        pytest.skip("of four bytes")
    fields = [5, 1, int(specimen.keyed), 0, 16]
    fields[place] = value
    header = np.array([tuple(fields)], "<u8,<u4,<u4,<u8,<u8").tobytes()
    forge_run(path, "pending", header + bytes(200))
    assert require_safe(specimen, path, writer=False)["errors"]


@pytest.mark.parametrize("other", ["words", "keys"])
def test_pending_rows_of_other_options_are_refused(
    specimen: Specimen, path: Path, other: str
) -> None:
    """Whole ones; two fields of the header that agree with its size."""
    words = 2 if other == "words" else 1
    keyed = specimen.keyed != (other == "keys")
    table = sort_table(
        "", np.zeros((1, words), np.uint64), np.zeros(1, np.uint64),
        KeyHeap.of(["x"]) if keyed else None, horizon=1,
    )
    forge_run(path, "pending", encode_pending(table, Reservoir.empty(words)))
    assert require_safe(specimen, path, writer=True)["errors"]


def test_segments_of_other_options_are_refused(specimen: Specimen, path: Path) -> None:
    with simindex.open(path) as index:
        values = index.options.to_dict()
    values["keys"] = False if specimen.keyed else "str"
    forge_value(path, "options", msgpack.packb(values))
    assert require_safe(specimen, path, writer=True)["errors"]


def test_tombstones_of_any_number_are_read(specimen: Specimen, path: Path) -> None:
    """They may delete what is there, and no more."""
    rng = np.random.default_rng(1)
    payload = rng.integers(0, 1 << 64, 3 * 50, dtype=np.uint64).tobytes()
    for cut in (len(payload), 13, 0):
        forge_run(path, "tombstones", payload[:cut])
        require_safe(specimen, path, writer=False)


def test_directories_that_do_not_rise_are_refused(specimen: Specimen, path: Path) -> None:
    """Every page of every directory in turn: falling, beyond the rows, of another length."""
    with lmdb.open(
        str(path / "catalog"), map_size=1 << 30, max_dbs=6, lib_version=0, readonly=True
    ) as env, env.begin() as txn:
        pages = dict(txn.cursor(env.open_db(b"headers", txn=txn, create=False)))
    lies: list[Callable[[bytes], bytes]] = [
        lambda page: page[::-1], lambda page: b"\xff" * len(page), lambda page: page[:-4],
        lambda page: page + bytes(4), lambda page: b"", lambda page: page[:-1],
    ]
    for number, (key, value) in enumerate(sorted(pages.items())[:4]):
        for lie in lies[number % 2 :: 2]:
            made = lie(value[:-4])
            forge(path, lambda get, key=key, made=made: {("headers", key): made})
            assert require_safe(specimen, path, writer=False)["errors"]
        forge(path, lambda get, key=key, value=value: {("headers", key): value[:-4]})
    require_safe(specimen, path, writer=False)


def test_recipe_that_names_code_runs_none(path: Path, tmp_path: Path) -> None:
    """Its tokenizer is a name, compared with what the caller has; nothing is imported for it."""
    marker = tmp_path / "ran"
    (tmp_path / "hostile_tokenizer.py").write_text(
        f"open({str(marker)!r}, 'w').close()\ndef split(text): open({str(marker)!r}, 'w')\n"
    )
    whole = bytearray(Recipe(ngram=3).to_bytes())
    size = int.from_bytes(whole[12:16], "little")
    header = msgpack.unpackb(bytes(whole[16 : 16 + size]))
    for name in ("hostile_tokenizer:split", "os:system", "subprocess:getoutput"):
        header["tokenizer"], header["unicode"] = name, None
        packed = msgpack.packb(header)
        made = bytes(whole[:12]) + len(packed).to_bytes(4, "little") + packed
        made += hashlib.blake2b(made, digest_size=16).digest()
        forge_value(path, "recipe", made)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                sys.path.insert(0, str(tmp_path))
                loaded = set(sys.modules)
                try:
                    with simindex.open(path) as index:
                        index.check()
                        index.stats()
                        list(index.rows())
                        if index.recipe is not None:
                            index.recipe.batch(["touch " + str(marker)])
                except SimindexError:
                    pass
                code = 2 if "hostile_tokenizer" in set(sys.modules) - loaded else 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert not marker.exists()


# -- directories ----------------------------------------------------------------------------------


def outside_of(path: Path) -> Path:
    outside = path.parent.parent / "outside"
    outside.mkdir()
    return outside


def state(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(file): (file.lstat().st_mtime_ns, file.read_bytes() if file.is_file() else b"")
        for file in sorted(directory.rglob("*"))
    }


@pytest.mark.parametrize(
    "name", ["FORMAT", "LOCK", "catalog", "segments", "catalog/data.mdb", "catalog/lock.mdb"]
)
@pytest.mark.parametrize("kind", ["symlink", "hard link"])
def test_links_out_of_the_directory_are_not_written_through(
    specimen: Specimen, path: Path, name: str, kind: str
) -> None:
    outside = outside_of(path)
    target = path / name
    if kind == "hard link" and target.is_dir():
        pytest.skip("a directory has no hard links")
    moved = outside / target.name
    if target.name == "lock.mdb":
        moved.write_bytes(b"not to be touched")
        target.unlink()
    else:
        target.rename(moved)
    if kind == "symlink":
        target.symlink_to(moved)
    else:
        target.hardlink_to(moved)
    before = state(outside)
    found = require_safe(specimen, path)
    assert state(outside) == before
    if (name, kind) != ("FORMAT", "hard link"):  # which is read, and nobody writes it
        assert found["errors"]


@pytest.mark.parametrize("name", ["FORMAT", "LOCK", "catalog/data.mdb", "catalog/lock.mdb", "rows"])
def test_devices_in_the_place_of_files_are_refused(
    specimen: Specimen, path: Path, name: str
) -> None:
    target = path / name if name != "rows" else sorted((path / "segments").glob("*.rows"))[0]
    target.unlink()
    try:
        os.mknod(target, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # endless zeros
    except OSError as error:
        pytest.skip(f"this user makes no device: {error}")
    assert require_safe(specimen, path)["errors"]


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK], ids=["fifo", "socket"])
@pytest.mark.parametrize("suffix", [".bphs", ".issl"])
def test_rows_answer_where_a_structure_is_no_file(
    index_path: Path, kind: int, suffix: str
) -> None:
    values = np.arange(40, dtype=np.uint64)
    options = simindex.IndexOptions(
        batch_rows=16, structures=("psm", "bphs:G=2,g=1", "issl:w=8")
    )
    with simindex.open(index_path, "c", options=options) as index:
        index.append(values)
    for file in (index_path / "segments").glob(f"*{suffix}"):
        file.unlink()
        os.mknod(file, kind | 0o600)
    with simindex.open(index_path) as index:
        assert len(index.query(values, h=0)) == len(values)
        assert np.array_equal(index.top(values, k=1).distance[:, 0], np.zeros(len(values)))


def test_lock_of_another_file_keeps_what_it_holds(path: Path) -> None:
    """A second name of a file of somebody else's, which a writer would have emptied."""
    victim = path.parent / "victim"
    victim.write_bytes(b"not to be touched")
    (path / "LOCK").unlink()
    (path / "LOCK").hardlink_to(victim)
    with pytest.raises(SimindexError, match="LOCK"):
        simindex.open(path, "w")
    assert victim.read_bytes() == b"not to be touched"


# -- what only repair reads -----------------------------------------------------------------------


def test_a_head_that_says_nothing_costs_no_row(specimen: Specimen, path: Path) -> None:
    """Its seal holds, and it is not a list: rows of segments come back as if there were none."""
    forge_head(path, lambda head: b"no head")
    with pytest.raises(SimindexError):
        simindex.open(path)
    report = simindex.repair(path, apply=True)
    with simindex.open(path) as index:
        assert sum(len(rows.rows) for rows in index.rows()) == report.rows > 0
        assert [finding for finding in index.check() if finding.severity == "error"] == []


def test_a_description_of_any_length_is_not_unpacked(specimen: Specimen, path: Path) -> None:
    """Eight million empty lists in eight megabytes, which would take sixty times as much."""
    file = sorted((path / "segments").glob("*.rows"))[0]
    found = open_envelope(file)
    count = 8_000_000
    content: dict[tuple[int, int], Any] = {}
    for kind, itemsize in [(int(e["kind"]), int(e["itemsize"])) for e in Forged(file).true_table]:
        section = found.section(kind, f"V{itemsize}")
        assert section is not None
        content[kind, itemsize] = np.array(section).view(np.uint8)
    lists = b"\xdd" + count.to_bytes(4, "big") + b"\x90" * count
    content[DESCRIPTION, 1] = np.frombuffer(lists, np.uint8)
    specs = [SectionSpec(*of, len(data) // of[1]) for of, data in content.items()]
    file.unlink()
    made = NewFile(path / "segments")
    writer = EnvelopeWriter(made, found.identity, specs)
    for place, data in enumerate(content.values()):
        writer.write(place, data)
    writer.finish()
    made.publish(file.name, partial(reads_back, name=file.name))
    tracemalloc.start()
    try:
        assert SegmentRemains(file).description() == {}
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()
    assert require_safe(specimen, path, writer=False)["errors"]


def sparse(path: Path, pages: int, change: Callable[[bytearray, int], None]) -> None:
    """Lengthens the catalog by a hole, and changes both meta pages; (page, its number) is given."""
    data = path / "catalog" / "data.mdb"
    with data.open("r+b") as file:
        for number in (0, 1):
            file.seek(4096 * number)
            meta = bytearray(file.read(META.itemsize))
            change(meta, number)
            file.seek(4096 * number)
            file.write(meta)
        file.truncate(4096 * pages)


def place_of(name: str) -> int:
    """Where a field of a meta page begins."""
    assert META.fields is not None
    return int(META.fields[name][1])


@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_pages_of_a_hole_are_not_kept_in_mind(
    specimen: Specimen, path: Path, page_bytes: int
) -> None:
    """A file of four terabytes that takes some kilobytes of the disk."""
    pages = 1 << 30

    def change(meta: bytearray, number: int) -> None:
        struct.pack_into("<Q", meta, place_of("last"), pages * 4096 // page_bytes - 1)
        struct.pack_into("<I", meta, place_of("page_bytes"), page_bytes)

    sparse(path, pages, change)
    assert require_safe(specimen, path, writer=False)["errors"]


def test_long_values_in_a_hole_are_not_kept_in_mind(specimen: Specimen, path: Path) -> None:
    """Eight values of four gigabytes each, of which the disk holds a header."""
    data, count, run = path / "catalog" / "data.mdb", 8, 1 << 20
    leaf = data.stat().st_size // 4096
    nodes, page = [], bytearray(4096)
    with data.open("r+b") as file:
        for number in range(count):
            first, size = leaf + 16 + number * run, run * 4096 - 16
            node = struct.pack("<IHHQQ", size, 1, 8, number + 1, first)
            nodes.append(4096 - len(node) * (number + 1))
            page[nodes[-1] : nodes[-1] + len(node)] = node
            file.seek(4096 * first)
            file.write(struct.pack("<QHHI", first, 0, 4, run))
        struct.pack_into("<QHHHH", page, 0, leaf, 0, 2, 16 + 2 * count, nodes[-1])
        struct.pack_into(f"<{count}H", page, 16, *nodes)
        file.seek(4096 * leaf)
        file.write(page)
    pages = leaf + 16 + count * run

    def change(meta: bytearray, number: int) -> None:
        free = place_of("page_bytes")
        values = list(DATABASE.unpack_from(meta, free))
        values[2], values[4], values[7] = 1, 1, leaf  # depth, leaves, root
        DATABASE.pack_into(meta, free, *values)
        struct.pack_into("<Q", meta, place_of("last"), pages - 1)

    sparse(path, pages, change)
    assert require_safe(specimen, path, writer=False)["errors"]
