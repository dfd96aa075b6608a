"""The values of `meta`, and what each must be to be of use."""

from __future__ import annotations

from simindex.errors import CorruptFile, SimindexError, raised_by_a_handler
from simindex.options import IndexOptions
from simindex.planning.machine import Machine
from simindex.query import audit
from simindex.simhash.recipe import Recipe
from simindex.storage.catalog.records import stored_options
from simindex.storage.catalog.values import unpack
from simindex.storage.tables.reservoir import Reservoir


def require_usable(name: str, payload: bytes, options: IndexOptions) -> None:
    """Raises CorruptFile if the payload of a value, whose checksum held, is none that is written.

    Values of other names, which this version does not know, are passed over.
    """
    try:
        if name == "recipe":
            bits: int = Recipe.from_bytes(payload).bits
            if bits != options.bits:
                raise CorruptFile(f"it makes fingerprints of {bits} bits, not of {options.bits}")
        elif name == "reservoir":
            Reservoir.decode("the index", payload, options.words).check()
        elif name == "machine":
            Machine.from_dict(unpack("meta/machine", payload))
        elif name == "audit":
            audit.decode(payload)
        elif name == "options":
            stored_options(payload)
    except (SimindexError, ValueError) as error:
        if raised_by_a_handler(error):
            raise
        remedy = error.remedy if isinstance(error, SimindexError) else None
        what = error.what if isinstance(error, SimindexError) else error
        raise CorruptFile(
            f"the catalog's record meta/{name} cannot be used: {what}",
            remedy=remedy, path=f"meta/{name}",
        ) from error
