"""A file reads back as it was written, or says that it is damaged; it never answers wrongly."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from descriptors import open_files
from hypothesis import given, settings
from hypothesis import strategies as st

from simindex._kernels import _native
from simindex.errors import CorruptFile, FormatTooNew, FormatTooOld, StorageFull
from simindex.storage.files import disk
from simindex.storage.files.durable import NewFile
from simindex.storage.files.envelope import (
    CHUNK_BYTES,
    FOOTER,
    HEADER,
    PAGE_BYTES,
    SECTION,
    Envelope,
    Identity,
    open_envelope,
)
from simindex.storage.files.envelope_writer import EnvelopeWriter, SectionSpec, reads_back

IDENTITY = Identity(bytes(range(16)), 0x0123456789ABCDEF, 7, 6, 300, 64)
SPECS = [
    SectionSpec(1, 8, 300), SectionSpec(2, 8, 300), SectionSpec(9, 1, 0), SectionSpec(4, 1, 77),
]
RNG = np.random.default_rng(4)
CONTENTS = [
    RNG.integers(0, 2**64, 300, dtype=np.uint64),
    np.arange(300, dtype=np.uint64),
    np.empty(0, np.uint8),
    RNG.integers(0, 256, 77, dtype=np.uint8),
]


def write(
    directory: Path, name: str = "a.rows", identity: Identity = IDENTITY,
    contents: list[Any] | None = None, specs: list[SectionSpec] | None = None,
) -> Path:
    """A file of some sections, each written at once."""
    with NewFile(directory) as file:
        writer = EnvelopeWriter(file, identity, specs or SPECS)
        for place, values in enumerate(contents or CONTENTS):
            writer.write(place, values)
        writer.finish()
        return file.publish(name, partial(reads_back, name=name))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("written"))


@pytest.fixture
def copied(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(written, tmp_path / "a.rows"))


def damage_of(path: Path) -> str | None:
    """What is found wrong with a file, and None if its sections read back as they were written."""
    try:
        envelope = open_envelope(path)
        envelope.verify()
    except CorruptFile as error:
        return str(error)
    for spec, values in zip(SPECS, CONTENTS, strict=True):
        found = envelope.section(spec.kind, values.dtype.str)
        assert found is not None
        assert np.array_equal(found, values), "a wrong answer without an error"
    assert envelope.identity == IDENTITY
    return None


def reseal(data: bytearray) -> None:
    """Makes checksums of header and footer right again, as a hostile hand would."""
    crc = _native.crc32c(np.frombuffer(bytes(data[: PAGE_BYTES - 4]), np.uint8))
    data[PAGE_BYTES - 4 : PAGE_BYTES] = crc.to_bytes(4, "little")
    footer = len(data) - FOOTER.itemsize
    at = footer + FOOTER.fields["header_checksum"][1]
    data[at : at + 4] = crc.to_bytes(4, "little")
    crc = _native.crc32c(np.frombuffer(bytes(data[footer : len(data) - 12]), np.uint8))
    data[len(data) - 12 : len(data) - 8] = crc.to_bytes(4, "little")


def forge(path: Path, change: Callable[[Any, Any], None]) -> None:
    """Changes the header and section table of a file, and seals them again."""
    data = bytearray(path.read_bytes())
    page = np.frombuffer(bytes(data[:PAGE_BYTES]), np.uint8).copy()
    change(
        page[: HEADER.itemsize].view(HEADER),
        page[HEADER.itemsize : HEADER.itemsize + SECTION.itemsize * 16].view(SECTION),
    )
    data[:PAGE_BYTES] = page.tobytes()
    reseal(data)
    path.write_bytes(data)


# -- reading and writing --------------------------------------------------------------------------


def test_sections_read_back(written: Path) -> None:
    assert damage_of(written) is None
    envelope = open_envelope(written)
    assert envelope.section(3, "u1") is None
    assert envelope.file_bytes == written.stat().st_size
    assert not envelope.section(1, "<u8").flags.writeable  # type: ignore[union-attr]


def test_section_of_another_item_size_is_refused(written: Path) -> None:
    with pytest.raises(CorruptFile, match="item size"):
        open_envelope(written).section(1, "<u4")


@settings(max_examples=25)
@given(
    size=st.integers(0, 3 * CHUNK_BYTES + 9),
    cuts=st.lists(st.integers(0, 3 * CHUNK_BYTES + 9), max_size=6),
    near=st.lists(st.sampled_from([-1, 0, 1]), max_size=4),
)
def test_odd_pieces_make_the_file_that_one_write_makes(
    tmp_path_factory: pytest.TempPathFactory, size: int, cuts: list[int], near: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("pieces")
    first = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    second = first[: size // 2]
    specs = [SectionSpec(1, 1, size), SectionSpec(2, 1, size // 2)]
    whole = write(directory, "whole", contents=[first, second], specs=specs)
    edges = sorted(
        {0, size, *(min(c, size) for c in cuts)}
        | {min(max(CHUNK_BYTES * (i + 1) + d, 0), size) for i, d in enumerate(near)}
    )
    with NewFile(directory) as file:
        writer = EnvelopeWriter(file, IDENTITY, specs)
        for a, b in pairwise(edges):
            writer.write(0, first[a:b])
            writer.write(1, second[a:b])  # the other section in between
        writer.finish()
        file.publish("pieces", partial(reads_back, name="pieces"))
    assert (directory / "pieces").read_bytes() == whole.read_bytes()
    assert open_envelope(whole).damaged_chunks() == []
    shutil.rmtree(directory)


def test_incomplete_section_is_never_published(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="section 0"), NewFile(tmp_path) as file:
        EnvelopeWriter(file, IDENTITY, SPECS).finish()
    assert list(tmp_path.iterdir()) == []


def test_file_that_reads_back_differently_is_never_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a disk drops a write: the bytes are compared before the file gets its name."""
    real = os.pwrite
    monkeypatch.setattr(
        disk.os, "pwrite",
        lambda fd, data, offset: len(data) if offset == PAGE_BYTES else real(fd, data, offset),
    )
    with pytest.raises(CorruptFile, match="reads back"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(
        disk.os, "pwrite",
        lambda fd, data, offset: real(fd, data[: max(1, len(data) // 2)], offset),
    )
    assert damage_of(write(tmp_path)) is None


def test_full_disk_fails_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, offset: int, size: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(disk.os, "posix_fallocate", full)
    with pytest.raises(StorageFull):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


# -- accidents ------------------------------------------------------------------------------------


def test_every_truncation_is_noticed(copied: Path) -> None:
    size = copied.stat().st_size
    lengths = {0, 1, 63, PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + FOOTER.itemsize, size - 1}
    lengths |= set(range(0, size, 509)) | {size - FOOTER.itemsize, size - FOOTER.itemsize - 1}
    for length in sorted(lengths, reverse=True):
        os.truncate(copied, length)
        assert damage_of(copied) is not None, length


def test_every_extension_is_noticed(copied: Path) -> None:
    for extra in (1, 64, PAGE_BYTES):
        os.truncate(copied, copied.stat().st_size + extra)
        assert damage_of(copied) is not None


def live_bits(path: Path) -> list[int]:
    """Every bit of header, table, checksums and footer, some of the zeros and of the sections."""
    size = path.stat().st_size
    envelope = open_envelope(path)
    tail = size - FOOTER.itemsize - len(envelope._checksums) * 4
    dense = [
        *range(HEADER.itemsize + SECTION.itemsize * len(SPECS)),
        *range(PAGE_BYTES - 4, PAGE_BYTES),
        *range(tail, size),
    ]
    sparse = np.random.default_rng(1).integers(0, size * 8, 1500).tolist()
    return [byte * 8 + bit for byte in dense for bit in range(8)] + sparse


@pytest.mark.slow
def test_every_flipped_bit_is_noticed_or_read_by_nobody(copied: Path) -> None:
    """Between the sections lie zeros that nobody reads: only there a flip may go unseen."""
    clean = copied.read_bytes()
    used = set(range(PAGE_BYTES)) | set(range(4 * PAGE_BYTES, len(clean)))
    for page, values in ((1, CONTENTS[0]), (2, CONTENTS[1]), (3, CONTENTS[3])):
        used |= set(range(page * PAGE_BYTES, page * PAGE_BYTES + values.nbytes))
    unseen = 0
    with copied.open("r+b") as file:
        for bit in live_bits(copied):
            byte = bit // 8
            os.pwrite(file.fileno(), bytes([clean[byte] ^ (1 << bit % 8)]), byte)
            if damage_of(copied) is None:
                unseen += 1
                assert byte not in used, byte
            os.pwrite(file.fileno(), clean[byte : byte + 1], byte)
    assert unseen
    assert damage_of(copied) is None


@settings(max_examples=60)
@given(data=st.data())
def test_overwritten_stretches_are_noticed(written: Path, data: st.DataObject) -> None:
    clean = written.read_bytes()
    start = data.draw(st.integers(0, len(clean) - 1))
    stop = data.draw(st.integers(start + 1, min(len(clean), start + 600)))
    filler = data.draw(st.sampled_from([b"\0", b"\xff", b"A"]))
    torn = clean[:start] + filler * (stop - start) + clean[stop:]
    copy = written.parent / "torn"
    copy.write_bytes(torn)
    damage_of(copy)  # asserts that what is not reported reads back rightly


def test_damage_is_located(tmp_path: Path) -> None:
    rows = np.arange(3 * CHUNK_BYTES // 8 + 5, dtype=np.uint64)
    path = write(tmp_path, contents=[rows], specs=[SectionSpec(1, 8, len(rows))])
    data = bytearray(path.read_bytes())
    for at in (PAGE_BYTES + CHUNK_BYTES + 3, PAGE_BYTES + 3 * CHUNK_BYTES + 1):
        data[at] ^= 4
    path.write_bytes(data)
    envelope = open_envelope(path)
    assert envelope.damaged_chunks() == [
        (PAGE_BYTES + CHUNK_BYTES, CHUNK_BYTES), (PAGE_BYTES + 3 * CHUNK_BYTES, 40)
    ]
    with pytest.raises(CorruptFile) as caught:
        envelope.verify()
    assert caught.value.data == {"path": str(path), "offset": PAGE_BYTES + CHUNK_BYTES}


def test_chunk_in_another_place_is_noticed(tmp_path: Path) -> None:
    """Its bytes are whole, and so is the checksum beside them: only their place is wrong."""
    rows = RNG.integers(0, 2**64, 2 * CHUNK_BYTES // 8, dtype=np.uint64)
    path = write(tmp_path, contents=[rows], specs=[SectionSpec(1, 8, len(rows))])
    data = bytearray(path.read_bytes())
    a, b = PAGE_BYTES, PAGE_BYTES + CHUNK_BYTES
    data[a : a + CHUNK_BYTES], data[b : b + CHUNK_BYTES] = (
        data[b : b + CHUNK_BYTES], data[a : a + CHUNK_BYTES],
    )
    at = len(data) - FOOTER.itemsize - 8
    data[at : at + 4], data[at + 4 : at + 8] = data[at + 4 : at + 8], data[at : at + 4]
    footer = len(data) - FOOTER.itemsize
    crc = _native.crc32c(np.frombuffer(bytes(data[at : at + 8]), np.uint8))
    place = footer + FOOTER.fields["checksums"][1]
    data[place : place + 4] = crc.to_bytes(4, "little")
    reseal(data)
    path.write_bytes(data)
    assert len(open_envelope(path).damaged_chunks()) == 2


def test_sections_of_another_file_are_noticed(copied: Path, tmp_path: Path) -> None:
    other = Identity(IDENTITY.index, IDENTITY.file_id + 16, 7, 6, 300, 64)
    stranger = write(tmp_path, "b.rows", other, [CONTENTS[1], *CONTENTS[1:]]).read_bytes()
    mine = bytearray(copied.read_bytes())
    mine[PAGE_BYTES:-FOOTER.itemsize] = stranger[PAGE_BYTES:-FOOTER.itemsize]
    copied.write_bytes(mine)
    assert damage_of(copied) is not None


def test_footer_of_another_file_is_noticed(copied: Path, tmp_path: Path) -> None:
    other = Identity(b"another index   ", IDENTITY.file_id, 7, 6, 300, 64)
    stranger = write(tmp_path, "b.rows", other).read_bytes()
    mine = copied.read_bytes()
    copied.write_bytes(mine[: -FOOTER.itemsize] + stranger[-FOOTER.itemsize :])
    assert "another file" in str(damage_of(copied))


# -- hostile headers ------------------------------------------------------------------------------

HUGE = (1 << 61) + 1

FORGERIES: dict[str, Callable[[Any, Any], None]] = {
    "count that wraps to 8 bytes": lambda h, s: s["count"].__setitem__(0, HUGE),
    "largest count": lambda h, s: s["count"].__setitem__(0, 2**64 - 1),
    "one item more": lambda h, s: s["count"].__setitem__(3, 78 + PAGE_BYTES),
    "chunks forged": lambda h, s: s["chunks"].__setitem__(0, 2**62),
    "chunks missing": lambda h, s: s["chunks"].__setitem__(0, 0),
    "item size forged": lambda h, s: s["itemsize"].__setitem__(0, 2**32 - 1),
    "offset beyond the file": lambda h, s: s["offset"].__setitem__(1, 1 << 40),
    "offset that wraps": lambda h, s: s["offset"].__setitem__(1, 2**64 - PAGE_BYTES),
    "offset into the header": lambda h, s: s["offset"].__setitem__(0, 0),
    "offset within a page": lambda h, s: s["offset"].__setitem__(1, 2 * PAGE_BYTES + 8),
    "overlapping sections": lambda h, s: s["offset"].__setitem__(1, PAGE_BYTES),
    "sections out of order": lambda h, s: s["offset"].__setitem__(
        slice(0, 2), [2 * PAGE_BYTES, PAGE_BYTES]
    ),
    "checksums beyond the file": lambda h, s: h["checksum_offset"].__setitem__(0, 1 << 40),
    "checksums over a section": lambda h, s: h["checksum_offset"].__setitem__(0, PAGE_BYTES),
    "checksums at 2**64": lambda h, s: h["checksum_offset"].__setitem__(0, 2**64 - 64),
    "file size": lambda h, s: h["file_bytes"].__setitem__(0, 1 << 50),
    "no sections": lambda h, s: h["sections"].__setitem__(0, 0),
    "seventeen sections": lambda h, s: h["sections"].__setitem__(0, 17),
    "most sections": lambda h, s: h["sections"].__setitem__(0, 2**32 - 1),
    "one section more": lambda h, s: h["sections"].__setitem__(0, 5),
    "other chunks": lambda h, s: h["chunk_bytes"].__setitem__(0, CHUNK_BYTES * 2),
    "other byte order": lambda h, s: h["endian"].__setitem__(0, 0x04030201),
    "other magic": lambda h, s: h["magic"].__setitem__(0, b"\x89PNG\r\n\x1a\n"),
    "other file": lambda h, s: h["file_id"].__setitem__(0, 5),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_hostile_header_is_refused(copied: Path, name: str) -> None:
    forge(copied, FORGERIES[name])
    with pytest.raises(CorruptFile):
        open_envelope(copied)


@settings(max_examples=200)
@given(
    field=st.sampled_from(["offset", "count", "chunks", "itemsize"]),
    place=st.integers(0, 3),
    value=st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 64), st.integers(0, 5).map(
        lambda n: n * PAGE_BYTES
    )),
)
def test_no_forged_section_reaches_beyond_the_file(
    written: Path, field: str, place: int, value: int
) -> None:
    copy = Path(shutil.copy(written, written.parent / "forged"))
    if field == "itemsize":
        value &= 2**32 - 1
    forge(copy, lambda header, sections: sections[field].__setitem__(place, value))
    try:
        envelope = open_envelope(copy)
    except CorruptFile:
        return
    for number in range(4):
        assert len(envelope._bytes(number)) <= envelope.file_bytes
    envelope.damaged_chunks()


def test_unknown_section_and_newer_minor_version_are_read(copied: Path) -> None:
    def newer(header: Any, sections: Any) -> None:
        header["minor"], header["compatible"], header["read_compatible"] = 99, 5, 5
        sections["kind"][3] = 1234

    forge(copied, newer)
    envelope = open_envelope(copied)
    assert envelope.damaged_chunks() == []
    assert envelope.section(4, "u1") is None
    assert envelope.section(1234, "u1") is not None


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [("major", 2, FormatTooNew), ("incompatible", 1, FormatTooNew), ("major", 0, FormatTooOld)],
)
def test_other_versions_are_refused_by_name(
    copied: Path, field: str, value: int, error: type[CorruptFile]
) -> None:
    forge(copied, lambda header, sections: header[field].__setitem__(0, value))
    with pytest.raises(error, match=r"format \d+\.\d+"):
        open_envelope(copied)


@pytest.mark.parametrize("kind", ["directory", "fifo", "socket", "link", "empty"])
def test_what_is_no_plain_file_is_damage(tmp_path: Path, written: Path, kind: str) -> None:
    path = tmp_path / "x.rows"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)  # must not wait for a writer
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "link":
        path.symlink_to(written)
    else:
        path.touch()
    with pytest.raises(CorruptFile):
        open_envelope(path)


def test_map_outlives_the_name_and_keeps_no_file_open_after(written: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(written, tmp_path / "gone"))
    before = len(open_files())
    envelope: Envelope | None = open_envelope(path)
    assert envelope is not None
    rows = envelope.section(1, "<u8")
    path.unlink()
    assert np.array_equal(rows, CONTENTS[0])
    envelope = rows = None
    assert len(open_files()) == before
