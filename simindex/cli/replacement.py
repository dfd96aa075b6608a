"""A new index in the place of an old one, which stands until the new one is whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import simindex
from simindex.cli.interrupt import uninterrupted
from simindex.errors import CorruptFile, IndexNotFound
from simindex.storage import format as durable


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to build an index that takes the place of the one at `path` on a clean exit.

    The old index is held as by a writer meanwhile, so nobody adds to what will be gone; a damaged
    one cannot be held and is replaced all the same. An exception leaves it as it was. Where there
    is no index, the place is `path` itself.

    Raises IndexLocked when another process writes the old index. A kill or a power cut between the
    two renames at the end leaves both indexes, in a folder beside `path`; the old one is removed
    once the new one's name is durable.
    """
    with ExitStack() as held:
        try:
            with suppress(CorruptFile):
                held.callback(simindex.open(path, "w").close)
        except IndexNotFound:
            yield path
            return
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            yield beside / "new"
            with uninterrupted():
                durable.move(path, beside / "old")
                durable.move(beside / "new", path)
        finally:
            if path.exists():
                shutil.rmtree(beside, ignore_errors=True)
