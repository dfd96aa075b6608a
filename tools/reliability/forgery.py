"""Index directories whose checksums all hold, and whose content is not what was written.

    file       `Forged` changes the sections of a segment's file and makes its checksums again
    record     `forge_record`, `forge_head`, `forge_value` and `forge_run` put sealed values into a
               catalog, and name them in its head
    both       `forged` changes a file and makes the catalog's records agree with it
    at random  `disordered`, `altered` and `altered_record`, for trials
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import lmdb
import msgpack
import numpy as np

from simindex._kernels import _native
from simindex.storage.catalog import sealed_values
from simindex.storage.files.envelope import CHUNK_BYTES, FOOTER, HEADER, PAGE_BYTES, SECTION
from simindex.storage.tables.structure import DESCRIPTION, UNDECODABLE


class Forged:
    """A segment's file whose header and sections may be changed; `save` makes all checksums."""

    def __init__(self, file: Path) -> None:
        self.file, self.data = file, bytearray(file.read_bytes())
        raw = np.frombuffer(self.data, np.uint8)
        self.header = raw[: HEADER.itemsize].view(HEADER)
        count = int(self.header["sections"][0])
        table_end = HEADER.itemsize + SECTION.itemsize * count
        self.table = raw[HEADER.itemsize : table_end].view(SECTION)
        self.true_table = self.table.copy()
        self.checksum_offset = int(self.header["checksum_offset"][0])

    def section(self, kind: int, dtype: str) -> Any:
        """A section as an array that may be written."""
        for entry in self.true_table:
            if int(entry["kind"]) == kind:
                start = int(entry["offset"])
                stop = start + int(entry["itemsize"]) * int(entry["count"])
                return np.frombuffer(self.data, np.uint8)[start:stop].view(dtype)
        raise KeyError(kind)

    def save(self) -> int:
        """Writes the file and returns its footer's checksum."""
        raw = np.frombuffer(self.data, np.uint8)
        sums = []
        file_id = int(self.header["file_id"][0])
        for place, entry in enumerate(self.true_table):
            start = int(entry["offset"])
            stop = start + int(entry["itemsize"]) * int(entry["count"])
            seed = (file_id + place) & ((1 << 64) - 1)
            sums.append(_native.crc32c_chunks(raw[start:stop].copy(), CHUNK_BYTES, seed))
        checksums = np.concatenate(sums).astype("<u4").view(np.uint8)
        at = self.checksum_offset
        raw[at : at + len(checksums)] = checksums
        raw[PAGE_BYTES - 4 : PAGE_BYTES].view("<u4")[0] = _native.crc32c(
            raw[: PAGE_BYTES - 4].copy()
        )
        footer = raw[len(raw) - FOOTER.itemsize :]
        fields = footer.view(FOOTER)
        fields["header_checksum"] = raw[PAGE_BYTES - 4 : PAGE_BYTES].view("<u4")[0]
        fields["checksums"] = _native.crc32c(checksums.copy())
        fields["checksum"] = _native.crc32c(footer[:-12].copy())
        self.file.write_bytes(self.data)
        return int(fields["checksum"][0])


@contextmanager
def forged(path: Path, file: Path) -> Iterator[Forged]:
    """A segment's file to be changed; then its checksums hold, and the catalog's records and the
    files beside it agree."""
    change = Forged(file)
    yield change
    footer = change.save()
    if file.suffix == ".rows":
        agree(path, file.name, footer, int(change.header["rows"][0]))
        for other in sorted(file.parent.glob(f"{file.stem}-*")):
            beside = Forged(other)
            description = beside.section(DESCRIPTION, "u1")
            with suppress(ValueError, *UNDECODABLE):  # one that was forged itself
                structure, name, _ = msgpack.unpackb(description.tobytes())
                description[:] = np.frombuffer(msgpack.packb([structure, name, footer]), np.uint8)
                structure_agrees(path, other.name, beside.save())
    elif file.suffix == ".dead":
        deletions_agree(path, file.name, footer, change)
    else:
        structure_agrees(path, file.name, footer)


def deletions_agree(path: Path, name: str, footer: int, made: Forged) -> None:
    """Makes the head name another footer, number of rows and newest commit of a run."""

    def change(head: list[Any]) -> list[Any]:
        for run in head[4]:
            if run[-1] == name:
                run[1:4] = int(made.header["rows"][0]), int(made.header["horizon"][0]), footer
        return head

    forge_head(path, change)


def agree(path: Path, segment: str, footer: int, rows: int) -> None:
    """Makes the record of a segment name another footer and number of rows."""

    def change(record: list[Any]) -> list[Any]:
        record[0], record[3] = rows % (1 << 64), footer
        return record

    forge_record(path, segment, change)


def structure_agrees(path: Path, name: str, footer: int) -> None:
    def change(record: list[Any]) -> list[Any]:
        for structure in record[5]:
            if structure[1] == name:
                structure[3] = footer
        return record

    forge_record(path, f"{name[:25]}.rows", change)


def forge(path: Path, puts: Callable[[Callable[[str, bytes], Any]], dict[Any, Any]]) -> None:
    """Puts sealed values into the catalog; of `head` the payload is made of a list."""
    with lmdb.open(
        str(path / "catalog"), map_size=1 << 30, max_dbs=6, lib_version=0, readahead=False
    ) as env:
        databases = {name: env.open_db(name.encode(), create=False) for name in (
            "head", "meta", "segments", "headers", "pending", "tombstones"
        )}
        with env.begin(write=True) as txn:
            def get(database: str, key: bytes) -> Any:
                return (txn.get(key, db=databases[database]) or b"")[:-4]

            for (database, key), payload in puts(get).items():
                txn.put(key, sealed_values.seal(database, key, payload), db=databases[database])
        size = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    data = path / "catalog" / "data.mdb"
    os.truncate(data, max(size, data.stat().st_size))


def forge_head(path: Path, change: Callable[[list[Any]], Any]) -> None:
    def puts(get: Callable[[str, bytes], Any]) -> dict[Any, Any]:
        head = msgpack.unpackb(get("head", b"head"))
        made = change(head)
        return {("head", b"head"): made if isinstance(made, bytes) else msgpack.packb(made)}

    forge(path, puts)


def forge_named(
    path: Path, database: str, key: bytes, payload: bytes, place: int, name: Any, rows: int = 1
) -> None:
    """A record, and the head that names its checksum: place 2 segments, 3 and 4 runs, 5 values."""

    def puts(get: Callable[[str, bytes], Any]) -> dict[Any, Any]:
        head = msgpack.unpackb(get("head", b"head"))
        crc = sealed_values.checksum(database, key, payload)
        for entry in head[place]:
            if entry[0] == name:
                entry[-1] = crc
                break
        else:
            head[place].append([name, crc] if place in (2, 5) else [name, rows, 1, crc])
        return {(database, key): payload, ("head", b"head"): msgpack.packb(head)}

    forge(path, puts)


def forge_record(path: Path, segment: str, change: Callable[[list[Any]], Any]) -> None:
    def puts(get: Callable[[str, bytes], Any]) -> dict[Any, Any]:
        made = change(msgpack.unpackb(get("segments", segment.encode())))
        payload = made if isinstance(made, bytes) else msgpack.packb(made)
        head = msgpack.unpackb(get("head", b"head"))
        for entry in head[2]:
            if entry[0] == segment:
                entry[1] = sealed_values.checksum("segments", segment.encode(), payload)
        return {
            ("segments", segment.encode()): payload, ("head", b"head"): msgpack.packb(head),
        }

    forge(path, puts)


def forge_value(path: Path, name: str, payload: bytes) -> None:
    """A value of `meta`, in one part."""
    forge_named(path, "meta", name.encode(), in_parts(payload), 5, name)


def forge_run(
    path: Path, database: Literal["pending", "tombstones"], payload: bytes, rows: int = 1
) -> None:
    """A run of a number that none has, in one part."""
    place = {"pending": 3, "tombstones": 4}[database]
    key = (999).to_bytes(8, "big")
    forge_named(path, database, key, in_parts(payload), place, 999, rows)


def in_parts(payload: bytes, count: int = 1) -> bytes:
    """What the catalog holds of a payload, in the first of so many parts."""
    return count.to_bytes(4, "little") + catalog_crc(payload).to_bytes(4, "little") + payload


def catalog_crc(payload: bytes) -> int:
    return _native.crc32c(np.frombuffer(payload, np.uint8))


# -- at random ------------------------------------------------------------------------------------


def _items(rng: random.Random, made: Forged) -> Any:
    """The items of a section, as rows of unsigned numbers (n, m)."""
    entry = rng.choice([entry for entry in made.true_table if int(entry["count"])])
    size = int(entry["itemsize"])
    kind = next(kind for kind, of in (("<u8", 8), ("<u4", 4), ("u1", 1)) if size % of == 0)
    return made.section(int(entry["kind"]), kind).reshape(int(entry["count"]), -1)


def disordered(rng: random.Random, path: Path, file: Path) -> None:
    """Puts items of a section of a segment's file into another order."""
    with forged(path, file) as made:
        items = _items(rng, made)
        how = rng.choice(["reversed", "shuffled", "two", "rotated"])
        order = np.arange(len(items))
        if how == "reversed":
            order = order[::-1]
        elif how == "shuffled":
            order = np.random.default_rng(rng.getrandbits(32)).permutation(order)
        elif how == "rotated":
            order = np.roll(order, rng.randrange(len(items)))
        else:
            a, b = rng.randrange(len(items)), rng.randrange(len(items))
            order[[a, b]] = order[[b, a]]
        items[:] = items[order]


def altered(rng: random.Random, path: Path, file: Path) -> None:
    """Gives some items of a section of a segment's file other values."""
    with forged(path, file) as made:
        items = _items(rng, made)
        most = (1 << 8 * items.itemsize) - 1
        for _ in range(rng.choice([1, 1, 2, 10])):
            value = rng.choice([0, 1, most, most // 2, most // 2 + 1, rng.randrange(most)])
            items[rng.randrange(len(items)), rng.randrange(items.shape[1])] = value


def altered_record(rng: random.Random, path: Path) -> None:
    """Gives some bytes of a record of the catalog other values, or cuts it."""
    found: list[tuple[str, bytes, bytes]] = []
    with lmdb.open(
        str(path / "catalog"), map_size=1 << 30, max_dbs=6, lib_version=0, readonly=True
    ) as env, env.begin() as txn:
        for database in ("meta", "pending", "tombstones", "headers"):
            cursor = txn.cursor(env.open_db(database.encode(), txn=txn, create=False))
            records = [(database, bytes(key), bytes(value)[:-4]) for key, value in cursor]
            found += records if database != "headers" else records[:4]
    database, key, whole = rng.choice(found)
    start = 0 if database == "headers" else 8
    payload = bytearray(whole[start:])
    if rng.random() < 0.2:
        del payload[rng.randrange(len(payload) + 1) :]
    for _ in range(rng.choice([1, 1, 2, 10]) if payload else 0):
        at = rng.randrange(len(payload))
        width = rng.choice([1, 4, 8])
        value = rng.choice([bytes(8), b"\xff" * 8, b"\x7f" * 8, rng.randbytes(8)])[:width]
        payload[at : at + width] = value[: len(payload) - at]
    if database == "headers":
        forge(path, lambda get: {(database, key): bytes(payload)})
        return
    place = {"meta": 5, "pending": 3, "tombstones": 4}[database]
    name = key.decode() if database == "meta" else int.from_bytes(key, "big")
    forge_named(path, database, key, in_parts(bytes(payload)), place, name)
