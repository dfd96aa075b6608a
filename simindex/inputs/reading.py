"""From what the caller named to documents or fingerprints: picks a reader for each file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from simindex.errors import InvalidInput
from simindex.inputs import remote_files
from simindex.inputs.document import FINGERPRINTS, Document, Intake, Source
from simindex.inputs.files import Found, Patterns, found, is_index, name_from, printable
from simindex.inputs.foreign_formats import HEAD_BYTES, foreign
from simindex.inputs.formats import (
    AUTO,
    FORMATS,
    Format,
    holds_records,
    recognised,
)
from simindex.inputs.made_names import MadeNames
from simindex.inputs.markup import RAW
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.required_field import having, lacks
from simindex.inputs.streams import (
    STDIN,
    Unreadable,
    compression_of,
    first_bytes,
    open_bytes,
)

if TYPE_CHECKING:
    from simindex.inputs.document_columns import Documents, Later
    from simindex.inputs.extraction import Extraction
    from simindex.inputs.fingerprints import Fingerprints

T = TypeVar("T")

SHOWN_NAME = 200
"""Characters of a name that no file has: it may be a text."""


def require_inputs(inputs: Sequence[str], check: str = "check the name") -> None:
    """Refuse what cannot be read at all, before anything is created.

    Raises InvalidInput for a path that does not exist, which `check` is the remedy of, or standard
    input named twice; MissingExtra for .zst without its library.
    """
    for path in inputs:
        if remote_files.is_remote(path):
            _require_remote(path, check)
        elif path != STDIN and not os.path.exists(path):  # noqa: PTH110 - also of a very long name
            raise InvalidInput(
                f"{_shortened(printable(path))}: no such file or folder", remedy=check, path=path
            )
        if path != STDIN and is_index(Path(path)):
            raise InvalidInput(
                f"{printable(path)} is an index, which holds no texts",
                remedy="name the files that it was built from", path=path,
            )
        if path != STDIN and compression_of(path) == ".zst":
            from simindex.inputs.decompressors import require_zstandard

            require_zstandard()
    if list(inputs).count(STDIN) > 1:
        raise InvalidInput(
            "standard input (-) can be read only once", remedy="name it once", path=STDIN
        )


def _require_remote(path: str, check: str) -> None:
    try:
        there = remote_files.exists(path)
    except remote_files.RemoteError as error:
        raise InvalidInput(
            f"{_shortened(printable(path))}: cannot be opened: {error}",
            remedy=remote_files.CHECK_ADDRESS, path=path,
        ) from error
    if not there:
        raise InvalidInput(
            f"{_shortened(printable(path))}: no such file or folder", remedy=check, path=path
        )


def _shortened(name: str) -> str:
    return name if len(name) <= SHOWN_NAME else name[:SHOWN_NAME] + "..."


def rereadable(inputs: Sequence[str]) -> bool:
    """Whether a second reading finds the same: no standard input, no pipe."""
    return all(
        path != STDIN
        and (remote_files.is_remote(path) or Path(path).is_file() or Path(path).is_dir())
        for path in inputs
    )


def size_bytes(inputs: Sequence[str], options: ReadOptions | None = None) -> int | None:
    """Bytes on the disk of the files that `read` reads; None with standard input or a pipe."""
    options = options or ReadOptions()
    if not rereadable(inputs):
        return None
    patterns = Patterns(options.include, options.exclude)
    size = 0
    unheard = Intake(max_errors=None)
    for file in found(inputs, patterns, unheard, options.without, options.written):
        with suppress(OSError):
            if remote_files.is_remote(file.path):
                size += remote_files.size_bytes(file.path) or 0
            else:
                size += Path(file.path).stat().st_size
    return size


def read(
    inputs: Sequence[str], options: ReadOptions | None = None, intake: Intake | None = None
) -> Iterator[Document]:
    """Documents of all inputs, one at a time; see `read_in_columns`."""
    some: Any = _read(inputs, options, intake, in_columns=False)
    found: Iterator[Document] = some
    return found


def read_in_columns(
    inputs: Sequence[str], options: ReadOptions | None = None, intake: Intake | None = None
) -> Iterator[Document | Documents]:
    """Documents of all inputs, in the order given and a fixed order within each.

    Parameters
    ----------
    inputs : sequence of str
        Files, folders, and `-` for standard input.
    intake : Intake, optional
        Counts bad records; by default the first one raises.

    Yields
    ------
    Document or Documents
        One document, or some of a file as columns, where its format has them. The key of a text
        file is its path as reached from the input, such as ``folder/sub/name.txt``, or from
        `ReadOptions.origin`; of a record its id, or ``file:line``. A file that several inputs lead
        to is read once.

    Raises
    ------
    InvalidInput
        If the first hundred documents have no field `ReadOptions.id_field`, where one is named. And
        on one bad record more than `intake` allows. A file that is truncated or damaged counts as
        one, at the line it broke off: the records before it count, and the next file follows.

    Notes
    -----
    Holds one record, at most ``max_record_bytes``, or one column, of about 16 MiB, and the names of
    one folder. Where texts are
    taken from HTML by other processes, also about `extraction.AHEAD_BYTES` of pages.
    """
    return _read(inputs, options, intake, in_columns=True)


def _read(
    inputs: Sequence[str], options: ReadOptions | None, intake: Intake | None, *, in_columns: bool
) -> Iterator[Document | Documents]:
    from simindex.inputs.extraction import Extraction, in_turn

    options = options or ReadOptions()
    intake = intake or Intake()
    require_inputs(inputs)
    patterns = Patterns(options.include, options.exclude)
    made = MadeNames(
        [start_of_names(path, options) for path in inputs],
        lambda name: options.format != AUTO or name == options.stdin_name or holds_records(name),
    )

    def items() -> Iterator[Document | Documents | Later]:
        extract = None if options.html == RAW else extraction
        for file in found(inputs, patterns, intake, options.without, options.written):
            extraction.in_groups = not file.named or _is_file(file.path)
            yield from _read_file(
                file, options, intake, _texts_of, made, extract, in_columns=in_columns
            )

    def documents() -> Iterator[Document | Documents]:
        for document in in_turn(items(), intake, extraction):
            intake.documents += 1 if isinstance(document, Document) else len(document)
            yield document

    name = options.id_field
    with closing(Extraction(options.html)) as extraction:
        yield from documents() if name is None else having(
            documents(), name, "--id-field",
            lambda document: (
                isinstance(document, Document) and document.numbered and lacks(document, name)
            ),
        )


def holds_fingerprints(inputs: Sequence[str], options: ReadOptions | None = None) -> bool:
    """Whether the inputs hold fingerprints instead of texts, by the first bytes of each.

    A folder or a pipe holds texts, unless the format is one of fingerprints alone: what is read of
    a pipe is gone. Raises InvalidInput if some inputs hold the one and some the other.
    """
    options = options or ReadOptions()
    asked = FORMATS.get(options.format)
    if asked is not None and (asked.read is None or asked.read_fingerprints is None):
        return asked.read is None
    kinds = {path: _holds_fingerprints(path, asked, options.text_field) for path in inputs}
    if len(set(kinds.values())) > 1:
        rows, texts = (
            next(path for path in kinds if kinds[path] is kind) for kind in (True, False)
        )
        raise InvalidInput(
            f"{printable(rows)} holds fingerprints and {printable(texts)} texts",
            remedy="read them in two runs", path=rows, other=texts,
        )
    return any(kinds.values())


def _holds_fingerprints(path: str, asked: Format | None, text_field: str) -> bool:
    if path != STDIN and not remote_files.is_remote(path) and not Path(path).is_file():
        return False
    try:
        with open_bytes(path) as stream:
            head = first_bytes(stream, HEAD_BYTES)
    except Unreadable:
        return False
    row = asked or recognised(path, head, text_field)
    return row.holds_fingerprints(head, text_field)


def read_fingerprints(
    inputs: Sequence[str], options: ReadOptions | None = None, intake: Intake | None = None
) -> Iterator[Fingerprints]:
    """Fingerprints of all inputs, some rows at a time; otherwise as `read`.

    All are of one width, `intake.bits` if that is set; a row of another one is a bad record.
    """
    options = options or ReadOptions()
    intake = intake or Intake()
    require_inputs(inputs)
    patterns = Patterns(options.include, options.exclude)
    for file in found(inputs, patterns, intake, options.without, options.written):
        for some in _read_file(file, options, intake, _fingerprints_of, MadeNames()):
            intake.documents += len(some.batch)
            yield some


def _name_of(path: str, name: str, real: str, options: ReadOptions) -> str:
    """What a file or folder is named, by its path, as reached from the input, and without links."""
    if path == STDIN:
        return options.stdin_name
    if remote_files.is_remote(path):
        return printable(path)
    return printable(name if options.origin is None else name_from(real, options.origin))


def start_of_names(path: str, options: ReadOptions) -> str:
    """What names of the files that an input leads to begin with."""
    if remote_files.is_remote(path):
        return printable(path)
    real = os.path.realpath(path)
    name = _name_of(path, PurePath(path).as_posix(), real, options)
    # The names below a folder that has the origin in it begin as they like.
    return "" if name in (".", "/") or name.endswith("..") else name


Reader = Callable[[BinaryIO, Source, Format, bytes], Iterator[T]]
"""What is read of a stream, given what is told of it, its format and its first bytes."""


def _texts_of(
    stream: BinaryIO, source: Source, row: Format, head: bytes
) -> Iterator[Document | Documents | Later]:
    if row.read is not None and not row.holds_fingerprints(head, source.text_field):
        yield from row.read(stream, source)
    elif source.named:
        source.intake.bad(
            source.path, None, "holds fingerprints, and this command needs the texts",
            "name the files that have the texts; or `simindex build INDEX "
            f"{source.path}` and `simindex clusters INDEX` list the near-duplicates of these "
            "fingerprints",
        )
    else:
        source.intake.pass_over(source.path, FINGERPRINTS)


def _fingerprints_of(
    stream: BinaryIO, source: Source, row: Format, head: bytes
) -> Iterator[Fingerprints]:
    if row.read_fingerprints is None:
        source.intake.bad(
            source.path, None, "holds texts, and the other inputs hold fingerprints",
            "read them in two runs",
        )
        return
    yield from row.read_fingerprints(stream, source)


def _is_file(path: str) -> bool:
    """Whether all bytes of an input of this system are there: not of standard input or a pipe."""
    return path != STDIN and os.path.isfile(path)  # noqa: PTH113


def _read_file(
    file: Found, options: ReadOptions, intake: Intake, reader: Reader[T], made: MadeNames,
    extract: Extraction | None = None, *, in_columns: bool = False,
) -> Iterator[T]:
    intake.files += 1
    shown = printable(file.path)
    source = Source(
        shown, _name_of(file.path, file.name, file.real, options), intake,
        options.max_record_bytes, file.named, options.text_field, options.id_field, extract,
        options.all_fields, made, in_columns,
        is_file=_is_file(file.path),
    )
    try:
        with open_bytes(file.path, intake.count_bytes, stdin_copy=options.stdin_copy) as stream:
            row = FORMATS.get(options.format)
            try:
                head = first_bytes(stream, HEAD_BYTES)
            except Unreadable:
                head, row = b"", row or recognised(file.path, b"", options.text_field)
                if not row.goes_on:
                    raise
            if row is None:
                refused = foreign(file.path, head, options.text_field)
                if refused is not None and not file.named:
                    intake.pass_over(shown, refused.what)
                    return
                if refused is not None:
                    reason = f"{refused.what}, which cannot be read"
                    intake.bad(shown, None, reason, refused.remedy)
                    return
                row = recognised(file.path, head, options.text_field)
            yield from reader(stream, source, row, head)
    except Unreadable as reason:
        intake.bad(shown, reason.line, str(reason), reason.remedy)
