"""What the catalog holds: head, records, options, recipe, runs and headers, as LMDB gives them.

    input    which example u1, then records:
             database u1 | key length u1 | value length u3 | key | value

With checksums repaired every value is sealed, parts are those of their whole, and the head names
the values that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

import lmdb
import msgpack
import numpy as np

import simindex
from fuzzing.envelopes import QUERIES, SKETCH_WORDS, example
from fuzzing.target import Target
from simindex._kernels import _native
from simindex.planning.machine import Machine
from simindex.query import audit as auditing
from simindex.simhash.recipe import Recipe
from simindex.storage import snapshot
from simindex.storage.catalog.catalog import Catalog
from simindex.storage.catalog.environment import DATABASES
from simindex.storage.catalog.records import Reading, stored_options
from simindex.storage.catalog.sealed_values import PARTED, checksum, pack, unpack
from simindex.storage.tables.sketches import sketches_at

Records = dict[tuple[str, bytes], bytes]

KEPT = ((64, False, 0), (64, True, 0), (64, True, SKETCH_WORDS))
"""Examples whose catalogs are the seeds. A changed one is opened with the files of its example."""


class Stored:
    """A catalog without LMDB: the records of an input."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def get(self, database: str, key: bytes) -> bytes | None:
        """What `Transaction.get` gives."""
        return self._records.get((database, key))

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """What `Catalog.reading` gives."""
        yield Reading(cast(Any, self))


def encode(records: Records) -> bytes:
    """The records as an input."""
    parts = []
    for (database, key), value in records.items():
        parts += [bytes([DATABASES.index(database), len(key)]), len(value).to_bytes(3, "little")]
        parts += [key, value]
    return b"".join(parts)


def decode(data: bytes) -> Records:
    """The records of an input; of any bytes as many as there are."""
    records: Records = {}
    at = 0
    while at + 5 <= len(data):
        database, key_bytes = data[at] % len(DATABASES), data[at + 1]
        size = int.from_bytes(data[at + 2 : at + 5], "little")
        at += 5
        key, value = data[at : at + key_bytes], data[at + key_bytes : at + key_bytes + size]
        records[DATABASES[database], key] = value
        at += key_bytes + size
    return records


@cache
def _opened(number: int) -> simindex.Index:
    return simindex.open(example(*KEPT[number]))


def seeds() -> list[bytes]:
    """The catalogs of two indexes, the first byte saying of which; one holds a recipe as well."""
    found = []
    for number, kept in enumerate(KEPT):
        path = example(*kept) / "catalog"
        with lmdb.open(
            str(path), max_dbs=len(DATABASES), readonly=True, lock=False, lib_version=0
        ) as environment:
            records: Records = {}
            for name in DATABASES:
                database = environment.open_db(name.encode(), create=False)
                with environment.begin(db=database) as txn:
                    records |= {(name, bytes(key)): bytes(value) for key, value in txn.cursor()}
        more = {
            "recipe": simindex.Recipe(ngram=2).to_bytes(),
            "machine": pack(Machine().to_dict()),
            "audit": auditing.encode(auditing.of_nothing()),
        }
        head = cast(list[Any], unpack("head", records["head", b"head"][:-4]))
        for name, payload in more.items():
            records["meta", name.encode()] = b"\1\0\0\0" + bytes(4) + payload + bytes(4)
            head[5].append([name, 0])
        records["head", b"head"] = pack(head) + bytes(4)
        found.append(repair(bytes([number]) + encode(records)))
    return found


def repair(data: bytes) -> bytes:
    """The records sealed, whole, and named by their head."""
    records = decode(data[1:])
    for (database, key), value in records.items():
        payload = value[:-4]
        main = database == "meta" or len(key) == 8
        if database in PARTED and main and len(payload) >= 8:
            count = min(int.from_bytes(payload[:4], "little"), 4)
            rest = [
                records.get((database, key + part.to_bytes(4, "big")), b"")[:-4]
                for part in range(1, count)
            ]
            whole = b"".join([payload[8:], *rest])
            crc = _native.crc32c(np.frombuffer(whole, np.uint8))
            payload = payload[:4] + crc.to_bytes(4, "little") + payload[8:]
        records[database, key] = _sealed(database, key, payload)
    if ("head", b"head") in records:
        payload = _named(records["head", b"head"][:-4], records)
        records["head", b"head"] = _sealed("head", b"head", payload)
    return data[:1] + encode(records)


def _sealed(database: str, key: bytes, payload: bytes) -> bytes:
    return payload + checksum(database, key, payload).to_bytes(4, "little")


def _named(payload: bytes, records: Records) -> bytes:
    """A head with the checksums of the values that are there, if it is like one."""
    try:
        head = msgpack.unpackb(payload, strict_map_key=False)
        for place, database in ((2, "segments"), (5, "meta")):
            for child in head[place]:
                child[1] = _stored(records, database, child[0].encode())
        for place, database in ((3, "pending"), (4, "tombstones")):
            for run in head[place]:
                if len(run) > 4:
                    continue  # a file, whose own checksum it is
                run[3] = _stored(records, database, run[0].to_bytes(8, "big"))
        packed: bytes = msgpack.packb(head)
    except Exception:  # it is like none: then nothing of it is looked at
        return payload
    return packed


def _stored(records: Records, database: str, key: bytes) -> int:
    return int.from_bytes(records[database, key][-4:], "little")


def execute(data: bytes) -> None:
    """Opens the index that the records and the example's files make, and asks it."""
    index = _opened(data[0] % len(KEPT) if data else 0)
    stored = Stored(decode(data[1:]))
    catalog = cast(Catalog, stored)
    with stored.reading() as reading:
        _, head = reading.head()
        options = stored_options(reading.value(head, "options"))
        recipe = reading.value(head, "recipe")
        machine = reading.value(head, "machine")
        audit = reading.value(head, "audit")
    found = None
    try:
        found = snapshot.take(
            catalog, index.path / "segments", index=index._handle.view.index, options=options
        )
    finally:
        if recipe is not None:
            Recipe.from_bytes(recipe)
        if machine is not None:
            Machine.from_dict(unpack("machine", machine))
        if audit is not None:
            auditing.decode(audit)
    queries = np.repeat(QUERIES[:, None], options.words, axis=1)
    found.dead_rows, found.reservoir  # noqa: B018  # both are computed when asked for
    for table in found.tables:
        _native.probe_checked(
            table.checked, table.header_bits, queries, np.zeros(1, np.uint64), 3, False
        )
        if table.sketches is not None and len(table):
            sketches_at(table, np.array([0, len(table) - 1]))
        if table.keys is not None:
            table.keys.slice(0, len(table)).decoded("bytes")
    for _ in snapshot.live_rows(found, 16, options, None):
        pass
    for segment in found.segments:
        for tables in segment.structures.values():
            for permuted in tables.tables:
                len(permuted.directory)


TARGET = Target("catalog records", seeds, execute, repair)
