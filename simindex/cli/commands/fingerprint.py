"""`simindex fingerprint`: documents in, their fingerprints out; no index is made.

    plain   fingerprint TAB key                        with --weights: TAB and the sums, W_0 first
    --json  {"key": ..., "fingerprint": ..., ...}      one object for every document
    tables  key | fingerprint | skipped | ...          one row for every document

A document without a fingerprint has no line. Its object, or row, has the reason in `skipped`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

import click

import simindex
from simindex.cli.app import nothing_to_do, program
from simindex.cli.chunks import (
    Chunk,
    SkippedReport,
    characters_of,
    chunks,
    places_of_rows,
    texts_of,
)
from simindex.cli.console import cell, count, duration, megabytes, say
from simindex.cli.input_options import Reading, input_options, inputs_argument, piped_input
from simindex.cli.prepared_documents import Learning, idf_options, prepare, prepared_with
from simindex.cli.progress import Progress
from simindex.cli.recipes import asked_recipe, recipe_options, stored_recipe
from simindex.cli.results import Results, result_options
from simindex.cli.shared_options import NamedPath, output_options, threads_option
from simindex.cli.slots import read_ahead
from simindex.errors import InvalidOption
from simindex.inputs.document import Document
from simindex.inputs.fingerprints import SIZE, SKETCH
from simindex.inputs.reading import require_inputs
from simindex.outputs.columns import Kind, Write, as_json_line
from simindex.outputs.formats import JSONL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_TEXTS = "it cannot fingerprint texts", "name an index with a recipe, or leave out --recipe"


@program.command()
@inputs_argument
@click.option(
    "--text", "texts", multiple=True,
    help="A text of which to make a fingerprint. May be repeated.",
)
@click.option(
    "--recipe", "recipe_of", type=NamedPath(), metavar="INDEX",
    help="Use the recipe of an index, with the word weights (idf) that it learned.",
)
@click.option(
    "--weights", is_flag=True,
    help="Also print the sums of weights whose signs are the bits.",
)
@click.option(
    "--features", is_flag=True, help="Also print the features of each text, the heaviest first."
)
@threads_option
@recipe_options
@idf_options
@input_options
@result_options
@output_options
def fingerprint(
    inputs: tuple[str, ...], texts: tuple[str, ...], recipe_of: str | None, weights: bool,
    features: bool, threads: int | None, recipe_given: dict[str, Any], learning: Learning,
    reading: Reading, results: Results, as_json: bool, quiet: bool,
) -> None:
    """Print the fingerprints of documents or texts.

    Reads every --text and every document of the inputs. Prints one line for each: the fingerprint
    in hexadecimal and the key, separated by a tab. With --sketch-bits, --json also prints the
    sketch, and about how many different features the text has.

    An INPUT is a text file, a .jsonl, .csv or .tsv file (also compressed), a folder of such files,
    or - for JSON lines on standard input.
    """
    if not (inputs or texts):
        inputs = piped_input("nothing to fingerprint: give an INPUT or --text")
    if recipe_of is not None and (recipe_given or learning.asked):
        raise click.UsageError(
            "--recipe uses the recipe of an index: leave out the other options of a recipe"
        )
    tabular = results.format is not None and results.format.name != JSONL
    if features and tabular:
        raise click.UsageError("the features of a text are no table: leave out --features")
    require_inputs(inputs)
    results.require_apart(inputs, *(() if recipe_of is None else (recipe_of,)))
    reading = reading.of_this_run()
    silent = quiet or results.on_terminal
    if recipe_of is not None:
        recipe = stored_recipe(recipe_of, *NO_TEXTS)
        prepared = prepared_with(recipe, inputs, reading)
    elif not inputs and not (recipe := asked_recipe(recipe_given)).fitted:
        raise InvalidOption(
            f"--weighting {recipe.weighting} learns idf from documents, and there is no INPUT",
            remedy="give one, or --recipe INDEX for the idf of an index", option="weighting",
            found=recipe.weighting,
        )
    else:
        # Without an index to keep an idf, none is learned unless that is asked for.
        learns = "weighting" in recipe_given or learning.asked
        given = recipe_given if learns else {"weighting": simindex.Recipe.weighting, **recipe_given}
        prepared = prepare(given, learning, inputs, reading, quiet=silent)
    printer = _Printer(prepared.recipe, weights, features, results.format is not None)
    started = time.perf_counter()
    read = read_ahead(chunks(chain(_given(texts), prepared.documents)))
    shown = Progress("fingerprinting", quiet=silent, extent=prepared.extent)
    with ExitStack() as opened:
        if tabular:
            printer.rows = opened.enter_context(results.table(printer.schema))
        else:
            printer.stream = opened.enter_context(results.lines())
        opened.enter_context(closing(read))
        progress = opened.enter_context(shown)
        for chunk in read:
            batch = prepared.recipe.batch(texts_of(chunk), threads=threads)
            printer.print(chunk, batch)
            progress.advance(len(chunk), characters_of(chunk))
    printer.without.close()
    if not printer.fingerprints:
        prepared.say()
        nothing_to_do(
            "no document has a fingerprint" if progress.documents else
            "the inputs hold no document",
            quiet=quiet,
        )
    if quiet:
        return
    seconds = time.perf_counter() - started
    prepared.say()
    say(
        f"{count(printer.fingerprints, 'fingerprint')} of "
        f"{count(progress.documents, 'document')} ({megabytes(progress.characters)}) in "
        f"{duration(seconds)}"
    )


def _given(texts: Iterable[str]) -> Iterator[Document]:
    for number, text in enumerate(texts, 1):
        name = f"text:{number}"
        yield Document(key=name, text=text, path=name)


class _Printer:
    """Writes what was asked for of each document."""

    def __init__(self, recipe: Any, weights: bool, features: bool, as_json: bool) -> None:
        self._recipe = recipe
        self._weights = weights
        self._features = features
        self._as_json = as_json
        self.rows: Write | None = None
        """What takes rows of a table, else `stream` takes lines."""
        self.stream: TextIO = sys.stdout
        self.fingerprints = 0
        self.without = SkippedReport()

    @property
    def schema(self) -> dict[str, Kind]:
        """The columns of a table."""
        schema: dict[str, Kind] = {"key": "text", "fingerprint": "text", "skipped": "text"}
        if self._recipe.sketch_bits:
            schema |= {SKETCH: "text", SIZE: "int64"}
        if self._weights:
            schema["weights"] = "float32s"
        return schema

    def print(self, chunk: Chunk, batch: Any) -> None:
        """What there is to say about a chunk of documents, in their order."""
        from simindex.bits.hamming import to_hex

        self.fingerprints += len(batch)
        digits = to_hex(batch.rows)
        sketches = None if batch.sketch is None else to_hex(batch.sketch)
        places = places_of_rows(len(chunk), batch.skipped)
        if self._as_json:
            row_of = {place: row for row, place in enumerate(places)}
            reason_of = {skip.position: skip.reason for skip in batch.skipped}
            rows = []
            for place, document in enumerate(chunk):
                row = row_of.get(place)
                made = (
                    {"fingerprint": None, "skipped": reason_of[place]} if row is None
                    else self._made(batch, digits, sketches, row)
                )  # fmt: skip
                made = {"key": document.key, **made}
                if self._features:
                    made["features"] = [
                        {**asdict(found), "feature": _writable(found.feature)}
                        for found in self._recipe.features(document.text)
                    ]
                if self.rows is None:
                    self.stream.write(as_json_line(made) + "\n")
                else:
                    rows.append(made)
            if self.rows is not None:
                self.rows({name: [made.get(name) for made in rows] for name in self.schema})
        else:
            for row, place in enumerate(places):
                self.stream.write(self._lines(chunk[place], batch, digits, row))
            self.without.add(chunk, batch.skipped)

    def _made(
        self, batch: Any, digits: list[str], sketches: list[str] | None, row: int
    ) -> dict[str, Any]:
        made: dict[str, Any] = {"fingerprint": digits[row]}
        if sketches is not None:
            made |= {"sketch": sketches[row], "size": int(batch.sizes[row])}
        if self._weights:
            made["weights"] = [float(number) for number in _numbers(batch.weights[row])]
        return made

    def _lines(self, document: Document, batch: Any, digits: list[str], row: int) -> str:
        lines = f"{digits[row]}\t{cell(document.key)}"
        if self._weights:
            lines += "\t" + " ".join(_numbers(batch.weights[row]))
        if self._features:
            for found in self._recipe.features(document.text):
                shown = _writable(cell(found.feature))
                lines += f"\n  {found.weight:10.4g} {found.count:6,}  {shown}"
        return lines + "\n"


def _numbers(weights: NDArray[np.float32]) -> list[str]:
    """The shortest decimal numbers that are read back as the same float32."""
    return [str(number).removesuffix(".0") for number in weights.astype("U").tolist()]


def _writable(feature: str) -> str:
    # Half of a surrogate pair, which stands for a byte of the call that is no UTF-8.
    return feature.encode("utf-8", "backslashreplace").decode()
