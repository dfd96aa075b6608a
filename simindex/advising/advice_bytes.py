"""A recommendation as the catalog keeps it: a msgpack map with the names of `Advice`."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import isfinite
from typing import TYPE_CHECKING

import msgpack

from simindex.errors import CorruptFile
from simindex.records.advice import Advice
from simindex.storage.catalog.sealed_values import unpack

if TYPE_CHECKING:
    from simindex.storage.catalog.catalog import Catalog

VALUE = "advice"
"""Of the catalog's values."""


def encode(advice: Advice) -> bytes:
    """The advice as the catalog keeps it."""
    packed: bytes = msgpack.packb(asdict(advice))
    return packed


def decode(payload: bytes) -> Advice:
    """The advice of a payload whose checksum held."""
    found = unpack(f"meta/{VALUE}", payload)
    if not isinstance(found, dict) or found.keys() != {field.name for field in fields(Advice)}:
        raise CorruptFile("the recommendation has other fields than are written")
    kinds = {"str": (str,), "int": (int,), "bool": (bool,), "float": (float, int),
             "float | None": (float, int, type(None))}
    for field in fields(Advice):
        value = found[field.name]
        right = type(value) in kinds[str(field.type)]
        if not right or (isinstance(value, float) and not isfinite(value)):
            raise CorruptFile(f"{field.name} of the recommendation is {value!r}")
    return Advice(**found)


def stored_advice(catalog: Catalog) -> Advice | None:
    """That of the last commit."""
    with catalog.reading() as reading:
        _, head = reading.head()
        payload = reading.value(head, VALUE)
    return None if payload is None else decode(payload)
