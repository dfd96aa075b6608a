"""Options that several commands share, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

import simindex
from simindex.cli.console import count, say
from simindex.errors import InvalidOption
from simindex.inputs import FORMATS, Document, Intake, ReadOptions, read, rereadable

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


_recipe_options = _together(
    click.option("--bits", type=int, help="Width of a fingerprint."),
    click.option("--unit", type=click.Choice(["word", "char"]), help="What n-grams are made of."),
    click.option("--ngram", callback=_ngram, metavar="N[,N...]", help="Sizes of the n-grams."),
    click.option("--weighting", type=click.Choice(["tf", "tfidf", "binary"])),
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


def _adopt(wrapper: Any, command: Any) -> None:
    wrapper.__name__ = command.__name__
    wrapper.__doc__ = command.__doc__
    wrapper.__click_params__ = getattr(command, "__click_params__", [])


def make_recipe(
    given: dict[str, Any], inputs: Sequence[str], reading: Reading, intake: Intake,
    without: Path | None = None,
) -> tuple[Any, Intake]:
    """The recipe asked for, and the account for the reading to come.

    tf-idf weights are learned by reading all inputs once more: bad records are reported then, and
    not again by the account returned. InvalidOption when the inputs can be read only once.
    """
    recipe = simindex.Recipe(**given)
    if given.get("weighting") != "tfidf":
        return recipe, intake
    if not rereadable(inputs):
        raise InvalidOption(
            "--weighting tfidf reads its inputs twice, which standard input and pipes do not allow:"
            " store them in a file, or choose another weighting",
            option="weighting",
        )
    documents = reading.documents(inputs, intake, without)
    return recipe.fit(document.text for document in documents), reading.intake(silent=True)


def say_passed_over(intake: Intake) -> None:
    """Report files in folders that are no text files."""
    for kind, number in sorted(intake.passed_over.items()):
        say(f"passed over {count(number, 'file')}: {kind}")
