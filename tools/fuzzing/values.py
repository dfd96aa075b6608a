"""Values that travel by themselves: recipes, document frequencies, FORMAT, audits, machines."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgpack
import numpy as np

from fuzzing.target import Target, workplace
from simindex import DocumentFrequencies, Recipe
from simindex._kernels import _native
from simindex.checks import is_int
from simindex.options import IndexOptions
from simindex.planning.machine import Machine
from simindex.query import audit
from simindex.simhash import recipe_bytes
from simindex.storage.catalog.records import Head, Run, stored_options
from simindex.storage.catalog.sealed_values import unpack
from simindex.storage.files.format import FORMAT_MAGIC, read_format, write_format

TEXTS = ["the quick brown fox jumps over the lazy dog", "a dog", ""]


def seeds() -> list[bytes]:
    """Each of them, small; those without a magic number of their own behind a letter."""
    learned = Recipe(weighting="tfidf", ngram=(1, 2)).fit(TEXTS)
    plain = Recipe(unit="char", ngram=(2, 3), bits=128, projection="ternary")
    directory = workplace()
    write_format(directory, bytes(range(16)))
    counted = learned.document_frequencies(TEXTS)
    found = [
        learned.to_bytes(), plain.to_bytes(), Recipe(stop_words=["a"]).to_bytes(),
        counted.to_bytes(), (directory / "FORMAT").read_bytes(),
    ]
    head = Head(3, 40, 5, {f"{1:016x}-{2:08x}.rows": 7}, (Run(1, 2, 3, 4),), (), {"options": 9})
    found += [
        b"h" + head.encode(),
        b"a" + audit.encode(audit.of_nothing()),
        b"m" + bytes(msgpack.packb(Machine().to_dict())),
        b"o" + bytes(msgpack.packb(IndexOptions().to_dict())),
    ]
    return found


def repair(data: bytes) -> bytes:
    """The bytes with the digest at their end, or FORMAT's checksum."""
    if data[:8] in (recipe_bytes.RECIPE.magic, recipe_bytes.FREQUENCIES.magic):
        return data[:-16] + blake2b(data[:-16], digest_size=16).digest()
    if data[:8] == FORMAT_MAGIC and len(data) == 64:
        crc = _native.crc32c(np.frombuffer(data[:-4], np.uint8))
        return data[:-4] + crc.to_bytes(4, "little")
    return data


def execute(data: bytes) -> None:
    """Reads the value, and uses it."""
    if data[:8] == recipe_bytes.RECIPE.magic:
        recipe = Recipe.from_bytes(data)
        if is_int(recipe.tokenizer):
            recipe.batch(TEXTS)
        return
    if data[:8] == recipe_bytes.FREQUENCIES.magic:
        counted = DocumentFrequencies.from_bytes(data)
        if counted.documents:
            counted.table()
        return
    if data[:8] == FORMAT_MAGIC:
        directory = workplace() / "format"
        directory.mkdir(exist_ok=True)
        (directory / "FORMAT").write_bytes(data)
        read_format(directory)
        return
    readers: dict[bytes, Any] = {
        b"h": Head.decode,
        b"a": audit.decode,
        b"m": lambda payload: Machine.from_dict(unpack("machine", payload)),
        b"o": stored_options,
    }
    readers.get(data[:1], bytes)(data[1:])


TARGET = Target("values", seeds, execute, repair)
