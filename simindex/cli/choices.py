"""Options that several commands share, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

import simindex
from simindex.cli.console import count, say
from simindex.cli.learning import (
    FIRST_DOCUMENTS,
    Lesson,
    learned_from_first,
    learned_from_sample,
)
from simindex.errors import InvalidOption
from simindex.inputs import FORMATS, Document, Intake, ReadOptions, read, rereadable
from simindex.options import split_structures
from simindex.simhash.weighting import WEIGHTINGS

Command = TypeVar("Command", bound=Callable[..., Any])


def _together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


output_options = _together(
    click.option("--json", "as_json", is_flag=True, help="One JSON object a line."),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no summary."),
)

index_argument = click.argument("index_path", metavar="INDEX", type=click.Path())

structures_option = click.option(
    "--structures", metavar="NAMES",
    callback=lambda _ctx, _parameter, text: None if text is None else split_structures(text),
    help="What each segment carries, such as psm,bphs:G=5,g=2: permuted tables for exact queries.",
)

_input_options = _together(
    click.option(
        "--format", "kind", type=click.Choice(FORMATS), default="auto",
        help="auto goes by suffix: .jsonl .ndjson .csv .tsv, before .gz or .zst; else text.",
    ),
    click.option("--text-field", default="text", show_default=True, help="Field of the text."),
    click.option(
        "--key-field", default="id", show_default=True,
        help="Field of the name; a record without it is named FILE:LINE.",
    ),
    click.option("--include", multiple=True, metavar="GLOB", help="Only such files in folders."),
    click.option("--exclude", multiple=True, metavar="GLOB", help="No such files or folders."),
    click.option(
        "--max-errors", type=click.IntRange(min=0), default=0, show_default=True,
        help="Bad records to skip; one more stops with exit code 4.",
    ),
)


def input_options(command: Command) -> Command:
    """How inputs are read; the command gets a `Reading` as `reading`."""

    def collected(
        *args: Any, kind: str, text_field: str, key_field: str, include: Sequence[str],
        exclude: Sequence[str], max_errors: int, **others: Any,
    ) -> Any:
        reading = Reading(
            format=kind, text_field=text_field, key_field=key_field, include=tuple(include),
            exclude=tuple(exclude), max_errors=max_errors,
        )
        return command(*args, reading=reading, **others)

    _adopt(collected, command)
    return _input_options(collected)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Reading:
    """How inputs are read, and how many bad records are skipped."""

    format: str
    text_field: str
    key_field: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    max_errors: int

    def intake(self, *, silent: bool = False) -> Intake:
        """A new account of bad records that reports them on standard error."""
        return Intake(max_errors=self.max_errors, report=None if silent else say)

    def documents(
        self, inputs: Sequence[str], intake: Intake, without: Path | None = None
    ) -> Iterator[Document]:
        """The documents of the inputs."""
        options = ReadOptions(
            format=self.format, text_field=self.text_field, key_field=self.key_field,
            include=self.include, exclude=self.exclude, without=without,
        )
        return read(inputs, options, intake)


def _ngram(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    if value is None:
        return None
    try:
        sizes = tuple(int(size) for size in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of numbers such as 3 or 1,2,3") from None
    return sizes[0] if len(sizes) == 1 else sizes


_NAMES: tuple[str, ...] = tuple(WEIGHTINGS)
_OF_TEXTS = [name for name in _NAMES if name != "given"]  # which is no weight of a text's features

_recipe_options = _together(
    click.option("--bits", type=int, help="Width of a fingerprint."),
    click.option("--unit", type=click.Choice(["word", "char"]), help="What n-grams are made of."),
    click.option("--ngram", callback=_ngram, metavar="N[,N...]", help="Sizes of the n-grams."),
    click.option(
        "--weighting", type=click.Choice(_OF_TEXTS),
        help="How much a feature counts; kinds with idf learn it from the documents first.",
    ),
    click.option(
        "--min-features", type=int, help="A text with fewer features gets no fingerprint."
    ),
)


def recipe_options(command: Command) -> Command:
    """How texts become fingerprints; the command gets what was asked for as `recipe_given`."""

    def collected(
        *args: Any, bits: int | None, unit: str | None, ngram: Any, weighting: str | None,
        min_features: int | None, **others: Any,
    ) -> Any:
        asked = {
            "bits": bits, "unit": unit, "ngram": ngram, "weighting": weighting,
            "min_features": min_features,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return command(*args, recipe_given=given, **others)

    _adopt(collected, command)
    return _recipe_options(collected)  # type: ignore[return-value]


_idf_options = _together(
    click.option(
        "--idf-sample", type=float, metavar="FRACTION",
        help="Share of the documents to learn idf from, in a first pass; by default 1, all.",
    ),
    click.option(
        "--idf-first", type=click.IntRange(min=1), metavar="N",
        help="Learn idf from the first N documents and read the inputs once; by default "
        f"{FIRST_DOCUMENTS:,} where they can be read only once.",
    ),
)


def idf_options(command: Command) -> Command:
    """From which documents idf is learned; the command gets a `Learning` as `learning`."""

    def collected(
        *args: Any, idf_sample: float | None, idf_first: int | None, **others: Any
    ) -> Any:
        return command(*args, learning=Learning(idf_sample, idf_first), **others)

    _adopt(collected, command)
    return _idf_options(collected)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Learning:
    """From which documents idf is to be learned; None where nothing was asked."""

    sample: float | None = None
    first: int | None = None

    @property
    def asked(self) -> bool:
        """Whether any option was given."""
        return self.sample is not None or self.first is not None

    def check(self, recipe: Any, inputs: Sequence[str]) -> None:
        """Refuse what contradicts itself, the recipe or the inputs, before anything is read."""
        if not self.asked:
            return
        option = "--idf-first" if self.sample is None else "--idf-sample"
        if recipe.fitted:
            raise InvalidOption(
                f"{option} is about idf, and --weighting {recipe.weighting} learns none: leave it "
                "out, or choose a weighting with idf",
                option=option, found=recipe.weighting,
            )
        if self.sample is None:
            return
        if self.first is not None:
            raise click.UsageError("--idf-sample and --idf-first exclude each other")
        if not 0 < self.sample <= 1:
            raise InvalidOption(
                f"--idf-sample {self.sample:g} is not valid: give a share above 0 and up to 1",
                option=option, found=self.sample, expected="above 0 and up to 1",
            )
        if not rereadable(inputs):
            raise InvalidOption(
                "--idf-sample reads the inputs twice, which standard input and pipes do not "
                "allow: learn from the first documents with --idf-first",
                option=option, found=self.sample,
            )


def _adopt(wrapper: Any, command: Any) -> None:
    wrapper.__name__ = command.__name__
    wrapper.__doc__ = command.__doc__
    wrapper.__click_params__ = getattr(command, "__click_params__", [])


def make_recipe(
    given: dict[str, Any], inputs: Sequence[str], reading: Reading, intake: Intake
) -> tuple[Any, Intake]:
    """The recipe asked for, and the account for the reading to come.

    idf is learned by reading all inputs once more: bad records are reported then, and not again
    by the account returned. InvalidOption when the inputs can be read only once.
    """
    recipe = simindex.Recipe(**given)
    if recipe.fitted:
        return recipe, intake
    if not rereadable(inputs):
        raise InvalidOption(
            f"--weighting {recipe.weighting} reads its inputs twice, which standard input and "
            "pipes do not allow: store them in a file, or choose another weighting",
            option="weighting",
        )
    fitted, _ = learned_from_sample(recipe, reading.documents(inputs, intake), 1, quiet=True)
    return fitted, reading.intake(silent=True)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A recipe that can make fingerprints, and the documents to make them of."""

    recipe: Any
    documents: Iterator[Document]
    intake: Intake
    """The account of reading these documents."""
    lesson: Lesson | None = None
    """What idf was learned from, if it was."""


def prepare(
    given: dict[str, Any], learning: Learning, inputs: Sequence[str], reading: Reading,
    without: Path, *, quiet: bool,
) -> Prepared:
    """The recipe asked for, with its idf learned, and the documents of the inputs.

    Inputs that can be read twice are, unless `learning` asks for the first documents; bad records
    are reported in the first pass only.
    """
    recipe = simindex.Recipe(**given)
    learning.check(recipe, inputs)
    intake = reading.intake()
    documents = reading.documents(inputs, intake, without)
    if recipe.fitted:
        return Prepared(recipe, documents, intake)
    if learning.first is None and rereadable(inputs):
        fraction = 1 if learning.sample is None else learning.sample
        fitted, lesson = learned_from_sample(recipe, documents, fraction, quiet=quiet)
        intake = reading.intake(silent=True)
        return Prepared(fitted, reading.documents(inputs, intake, without), intake, lesson)
    source = "the inputs" if rereadable(inputs) else "the stream"
    fitted, lesson, documents = learned_from_first(
        recipe, documents, learning.first or FIRST_DOCUMENTS, source, quiet=quiet
    )
    return Prepared(fitted, documents, intake, lesson)


def say_passed_over(intake: Intake) -> None:
    """Report files in folders that are no text files."""
    for kind, number in sorted(intake.passed_over.items()):
        say(f"passed over {count(number, 'file')}: {kind}")
