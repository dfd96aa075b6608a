"""The index that `dedup` matches against: a temporary one, or one that lasts.

    no --index            created in a temporary folder, small segments
    --index, missing      created with the recipe asked for, once idf is learned; removed again by a
                          run that commits nothing to it
    --index, there        its own recipe; options that would make another are refused. One without
                          rows that has none yet takes the recipe asked for, as a new one does
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import simindex
from simindex.cli.agreement import require_agreement
from simindex.cli.app import Interrupted
from simindex.cli.console import count, say
from simindex.cli.final_merge import merge_behind_a_bar
from simindex.cli.lock_wait import LockWait
from simindex.cli.opening import open_index
from simindex.cli.prepared_documents import Learning, Prepared, prepare, told_in_full
from simindex.cli.recipes import first_given, recipe_of_documents
from simindex.cli.wording import with_remark
from simindex.errors import IndexNotFound, InvalidOption, SimindexError
from simindex.index.first_texts import awaits_recipe
from simindex.index.origin import keep_origin
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.cli.input_options import Reading
    from simindex.cli.new_index import NewIndex
    from simindex.cli.progress import Progress
    from simindex.inputs.document import Document

TEMPORARY_BATCH_ROWS = 1 << 16
"""Small segments: what is pending is looked through for every buffer."""

NO_TEXTS = (
    "texts cannot be deduplicated through it",
    "name an index that was built from texts",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a run is told of its documents and their recipe."""

    inputs: tuple[str, ...]
    recipe: dict[str, Any]
    h: int | None
    """The radius asked for, which a new index stores."""
    learning: Learning
    reading: Reading
    silent: bool
    wait: LockWait
    """To write the index that lasts."""
    times: bool = False
    """Whether that has a time for each row."""

    def prepared(self, without: Path | None = None) -> Prepared:
        """The recipe asked for and the documents, with idf learned from them if it has any."""
        given = self.recipe if self.h is None else {**self.recipe, "h": self.h}
        return prepare(
            given, self.learning, self.inputs, self.reading, without,
            quiet=self.silent, printed=True,
        )


@dataclass(slots=True)
class MatchedIndex:
    """The index that is matched against, and what of this run is in it."""

    path: Path
    index: simindex.Index
    prepared: Prepared
    asked: Asked
    """With the reading that names documents as the index does."""
    lasting: bool = False
    made: NewIndex | None = None
    """The index, where this run made it."""
    committed: int = 0
    """Documents of this run that were read up to the last commit."""

    @contextmanager
    def outcome_told(self) -> Iterator[None]:
        """If the block ends early, its error says what a lasting index contains."""
        try:
            yield
        except KeyboardInterrupt as error:
            if not self.lasting:
                raise
            raise Interrupted(f"interrupted: {self._left()}") from error
        except SimindexError as error:
            if not self.lasting:
                raise
            raise with_remark(error, self._left()) from error
        except OSError as error:
            left = self._left()
            if self.lasting and not isinstance(error, BrokenPipeError):
                say(f"an output cannot be written; {left}")
            raise
        except Exception:
            self._left()
            raise

    def again(self) -> Iterator[Document]:
        """The documents of a second reading, whose bad records are not reported again."""
        reading = self.asked.reading
        without = Path(os.path.realpath(self.path)) if self.lasting else None
        return reading.documents(self.asked.inputs, reading.intake(silent=True), without)

    def leave(self, progress: Progress, *, quiet: bool) -> None:
        """Merges a lasting index behind a bar; a temporary one goes as it is."""
        if self.lasting:
            merge_behind_a_bar(self.index, self.path, progress, quiet=quiet)
        else:
            self.index.close()

    def _left(self) -> str:
        if self.lasting and self.made is not None and not self.committed:
            with suppress(SimindexError):  # of a handle that stopped writing
                self.index.discard()
            self.index.close()
            if self.made.removed():
                return f"{self.path} was not created"
        if not self.committed:
            return f"nothing of this run is committed, {self.path} is as it was"
        return (
            f"{count(self.committed, 'document')} of this run are through and committed in "
            f"{self.path}; what was printed after these comes again in a second run"
        )


def temporary(path: Path, asked: Asked, *, keys: Literal["str", False] = "str") -> MatchedIndex:
    """A new index for this run alone."""
    prepared = asked.prepared()
    return MatchedIndex(path, empty_index(path, prepared.recipe, keys=keys), prepared, asked)


def empty_index(
    path: Path, recipe: simindex.Recipe, *, keys: Literal["str", False] = False
) -> simindex.Index:
    """A new index within a temporary folder."""
    options = simindex.IndexOptions(keys=keys, batch_rows=TEMPORARY_BATCH_ROWS, recipe=recipe)
    return open_index(path, "n", options=options)


def lasting(path: Path, asked: Asked) -> MatchedIndex:
    """The index named by --index, with the writer's lock, created if there is none."""
    from simindex.cli.new_index import NewIndex

    try:
        index = asked.wait.open(path)
    except IndexNotFound:
        if not asked.silent:
            asked.reading.say_names(asked.inputs, path)
        with told_in_full(f"{path} was not created"):
            prepared = asked.prepared(Path(os.path.realpath(path)))
        options = simindex.IndexOptions(
            keys="str", recipe=prepared.recipe, times=asked.times
        )
        made = NewIndex.at(path, options)
        keep_origin(made.index)
        return MatchedIndex(path, made.index, prepared, asked, lasting=True, made=made)
    with ExitStack() as opened:
        opened.callback(index.close)
        if asked.times and not index.options.times:
            raise InvalidOption(
                f"{path} has no times, which an index gets when it is made",
                remedy="leave out --times, or name a new index", option="times", path=str(path),
            )
        if awaits_recipe(index):
            place = _first(path, index, asked)
            opened.pop_all()
            return place
        require_agreement(index, path, asked.recipe, {})
        recipe = recipe_of_documents(index, path, *NO_TEXTS)
        reading = asked.reading.named_for(index)
        if not asked.silent:
            reading.say_names(asked.inputs, path)
        keep_origin(index)
        intake = reading.intake()
        without = Path(os.path.realpath(path))
        documents = reading.in_columns(asked.inputs, intake, without)
        extent = reading.extent(asked.inputs, intake, without)
        opened.pop_all()
    prepared = Prepared(
        recipe, documents, intake, extent, id_field=asked.reading.options.id_field
    )
    return MatchedIndex(path, index, prepared, replace(asked, reading=reading), lasting=True)


def _first(path: Path, index: simindex.Index, asked: Asked) -> MatchedIndex:
    """An index without rows, which the first documents give their recipe as they do a new one."""
    asked = replace(
        asked, recipe=first_given(index, path, asked.recipe), reading=asked.reading.named_for(index)
    )
    if not asked.silent:
        asked.reading.say_names(asked.inputs, path)
    with told_in_full(f"{path} is as it was"):
        prepared = asked.prepared(Path(os.path.realpath(path)))
    keep_origin(index)
    return MatchedIndex(path, index, prepared, asked, lasting=True)


@contextmanager
def temporary_folder(parent: str | None) -> Iterator[Path]:
    """A folder that is gone when the block has ended; InvalidOption where none can be made."""
    import tempfile

    try:
        folder = tempfile.TemporaryDirectory(
            dir=parent, prefix="simindex-dedup-", ignore_cleanup_errors=True
        )
    except OSError as error:
        raise InvalidOption(
            f"no temporary folder can be made in {parent or tempfile.gettempdir()}: "
            f"{error.strerror}",
            remedy="name another with --temp-dir", option="temp_dir",
        ) from error
    with folder as name:
        yield Path(name)
