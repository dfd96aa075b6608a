"""Documents and a recipe that can make fingerprints of them: its idf is learned from the inputs.

    inputs -> recipe asked for -> idf learned, if it has any -> documents, read again or held
    inputs -> recipe that is there                           -> documents
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.account import met, named_by
from simindex.cli.app import Interrupted
from simindex.cli.console import say
from simindex.cli.input_options import Reading
from simindex.cli.learned_idf import FIRST_DOCUMENTS, Lesson
from simindex.cli.numbers import Count, Share
from simindex.cli.recipes import LEAST_DOCUMENTS, asked_recipe, default_recipe
from simindex.cli.shared_options import Option, collected
from simindex.cli.wording import with_remark
from simindex.errors import InvalidInput, InvalidOption
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.cli.progress import Extent
    from simindex.inputs.document import Document, Intake
    from simindex.inputs.document_columns import Documents


@contextmanager
def told_in_full(left: str) -> Iterator[None]:
    """What ends a pass that learns says what is `left`: nothing was made so far."""
    try:
        yield
    except InvalidInput as error:
        raise with_remark(error, left) from error
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted: {left}") from error


@dataclass(frozen=True, slots=True)
class Learning:
    """From which documents idf is to be learned; None where nothing was asked."""

    sample: float | None = None
    first: int | None = None

    @property
    def asked(self) -> bool:
        """Whether any option was given."""
        return bool(self.given)

    @property
    def given(self) -> list[str]:
        """Names of the options that were given."""
        values = {"idf_sample": self.sample, "idf_first": self.first}
        return [name for name, value in values.items() if value is not None]

    def check(self, recipe: Any, inputs: Sequence[str]) -> None:
        """Refuse what contradicts itself, the recipe or the inputs, before anything is read."""
        from simindex.inputs.reading import rereadable

        if not self.asked:
            return
        option = "--idf-first" if self.sample is None else "--idf-sample"
        if recipe.fitted:
            raise InvalidOption(
                f"{option} is about idf, and --weighting {recipe.weighting} learns none",
                remedy="leave it out, or choose a weighting with idf", option=option,
                found=recipe.weighting,
            )
        if self.sample is None:
            return
        if self.first is not None:
            raise click.UsageError("--idf-sample and --idf-first exclude each other")
        if not 0 < self.sample <= 1:
            raise InvalidOption(
                f"--idf-sample {self.sample:g} is not valid",
                remedy="give a share above 0 and up to 1", option=option, found=self.sample,
                expected="above 0 and up to 1",
            )
        if not rereadable(inputs):
            raise InvalidOption(
                "--idf-sample reads the inputs twice, which standard input and pipes do not allow",
                remedy="learn from the first documents with --idf-first", option=option,
                found=self.sample,
            )


idf_options: Option = collected(
    "learning", Learning,
    click.option(
        "--idf-sample", "sample", type=Share(), metavar="SHARE",
        help="Share of the documents to learn word weights (idf) from, such as 0.1, in a first "
        "pass. Default: 1, all of them.",
    ),
    click.option(
        "--idf-first", "first", type=Count(1), metavar="N",
        help="Learn word weights (idf) from the first N documents, and read the inputs once. "
        f"Default: {FIRST_DOCUMENTS:,} for standard input and pipes, which can be read only once.",
    ),
)
"""From which documents idf is learned; the command gets a `Learning` as `learning`."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A recipe that can make fingerprints, and the documents to make them of."""

    recipe: Any
    documents: Iterator[Document | Documents]
    """Some of them in columns, unless they are to be printed."""
    intake: Intake
    """The account of reading these documents."""
    extent: Extent
    """How much of the inputs was read."""
    lesson: Lesson | None = None
    """What idf was learned from, if it was."""
    id_field: str | None = None
    """The field of ids, where it was asked for."""

    def say(self) -> None:
        """What names documents, what reading met, and what idf was learned from."""
        for line in (*named_by(self.intake, self.id_field), *met(self.intake)):
            say(line)
        if self.lesson is not None and self.lesson.documents:
            say(self.lesson)


def prepared_with(
    recipe: Any, inputs: Sequence[str], reading: Reading, without: Path | None = None
) -> Prepared:
    """The documents of the inputs for a recipe that is there."""
    intake = reading.intake()
    documents = reading.in_columns(inputs, intake, without)
    extent = reading.extent(inputs, intake, without)
    return Prepared(recipe, documents, intake, extent, id_field=reading.options.id_field)


def prepare(
    given: dict[str, Any], learning: Learning, inputs: Sequence[str], reading: Reading,
    without: Path | None = None, *, quiet: bool, printed: bool = False, kept: bool = False,
) -> Prepared:
    """The recipe asked for, with its idf learned, and the documents of the inputs.

    Inputs that can be read twice are, unless they are held or `learning` asks for the first
    documents; bad records are reported in the first pass only. Documents keep their records if they
    are to be `printed`. Where features are to be `kept` and can be, documents come without texts.
    If nobody asked for idf, fewer documents than LEAST_DOCUMENTS get `Recipe`'s defaults instead.
    """
    from simindex.cli.kept_features import learned_and_kept
    from simindex.cli.learned_idf import learned_from_first, learned_from_sample
    from simindex.inputs.reading import rereadable
    from simindex.simhash.feature_columns import keeps_features

    recipe = default_recipe(given)
    learning.check(recipe, inputs)
    least = 1 if "weighting" in given or learning.asked else LEAST_DOCUMENTS
    id_field = reading.options.id_field
    if recipe.fitted:
        return prepared_with(recipe, inputs, reading, without)
    intake = reading.intake()
    documents = reading.in_columns(inputs, intake, without)
    extent = reading.extent(inputs, intake, without)
    if learning.first is None and rereadable(inputs):
        fraction = 1 if learning.sample is None else learning.sample
        if kept and fraction == 1 and keeps_features(recipe):
            fitted, lesson, held = learned_and_kept(
                recipe, documents, least, quiet=quiet, extent=extent
            )
        else:
            fitted, lesson, held = learned_from_sample(
                recipe, documents, fraction, least, quiet=quiet, printed=printed, extent=extent
            )
        if held is None:
            intake = reading.intake(silent=True)
            held = reading.in_columns(inputs, intake, without)
            extent = reading.extent(inputs, intake, without)
        return Prepared(fitted or asked_recipe(given), held, intake, extent, lesson, id_field)
    source = "the inputs" if rereadable(inputs) else "the stream"
    fitted, lesson, documents = learned_from_first(
        recipe, documents, learning.first or FIRST_DOCUMENTS, source, least, quiet=quiet,
        printed=printed,
    )
    return Prepared(fitted or asked_recipe(given), documents, intake, extent, lesson, id_field)
