"""`simindex export`: the rows of an index as text, which `simindex build` reads back.

    index with text keys       key, fingerprint
    index with keys of bytes   key_hex, fingerprint
    index without keys         id, fingerprint
    index with sketches        the same, sketch, size

A key makes its own id, so the id of a key is not printed. Rows are ordered by fingerprint, and
equal ones by name: equal rows give equal bytes, whatever the order they were added in.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import simindex
from simindex.cli.app import program
from simindex.cli.opening import open_index
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import index_argument, output_options
from simindex.inputs.fingerprints import SIZE, SKETCH
from simindex.outputs.columns import Kind

ROWS_AT_ONCE = 1 << 10

NAMES: dict[Any, str] = {"str": "key", "bytes": "key_hex", None: "id", False: "id"}
"""The column of names, by the kind of keys."""

Row = tuple[str, Any, str, int]
"""A fingerprint in hexadecimal, the row's id or key, its sketch, empty without one, and about how
many features it has."""


@program.command()
@index_argument
@result_options
@output_options
def export(index_path: str, results: Results, as_json: bool, quiet: bool) -> None:
    """Print every row of INDEX, ordered by fingerprint.

    Prints the key, or the id in an index without keys, and the fingerprint in hexadecimal, as JSON
    lines unless --output says otherwise. If INDEX has sketches, it also prints them, and as size
    about how many different features the text has. `simindex build` reads these lines, and CSV. The
    rows have neither the recipe nor the radius of INDEX: an index that is built from them takes no
    texts, and stores the radius of -d.
    """
    results.require_apart((), index_path)
    with open_index(index_path, "r") as index:
        name = NAMES[index.options.keys]
        rows = ordered(index)
        schema: dict[str, Kind] = {
            name: "uint64" if name == "id" else "text", "fingerprint": "text"
        }
        if index.options.sketch_bits:
            schema |= {SKETCH: "text", SIZE: "int64"}
        with results.table(schema) as write:
            while some := list(islice(rows, ROWS_AT_ONCE)):
                fingerprints, names, sketches, sizes = zip(*some, strict=True)
                columns = {
                    name: names, "fingerprint": fingerprints, SKETCH: sketches, SIZE: sizes,
                }
                write({column: columns[column] for column in schema})


def ordered(index: simindex.Index) -> Iterator[Row]:
    """All rows of an index by fingerprint and name.

    Rows are read in order of the first word of their fingerprints. Those that share it are held
    together.
    """
    for _, equal in groupby(_rows(index), key=lambda row: row[0][:16]):
        yield from sorted(equal, key=itemgetter(0, 1, 2, 3))


def _rows(index: simindex.Index) -> Iterator[Row]:
    for batch in index.rows():
        digits = batch.rows.astype(">u8").tobytes().hex()
        sketches = "" if batch.sketch is None else batch.sketch.astype(">u8").tobytes().hex()
        size, further = batch.bits // 4, batch.sketch_bits // 4
        sizes = [0] * len(batch) if batch.sizes is None else batch.sizes.tolist()
        names: Any = batch.ids.tolist() if batch.ids is not None else batch.keys
        for place, name in enumerate(names):
            shown = name.hex() if isinstance(name, bytes) else name
            yield (
                digits[place * size : (place + 1) * size], shown,
                sketches[place * further : (place + 1) * further], sizes[place],
            )
