"""What a command waits for at its end: segments are merged until few are left, behind a bar.

    merging files ━━━━━━━━━━━╺━━━━━━━ 61% 7,300,000 of 12,000,000 rows, 2 s left

Everything is committed by then, so Ctrl-C and SIGTERM only end the waiting: the command goes on as
if the index were merged, and the index is complete in more files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import simindex
from simindex.cli.app import held_back
from simindex.cli.console import say
from simindex.errors import SimindexError

if TYPE_CHECKING:
    from simindex.cli.progress import Progress

class _Enough(Exception):
    """Ends the merging."""


def merge_behind_a_bar(
    index: simindex.Index, path: object, progress: Progress, *, quiet: bool
) -> None:
    """Merges what leaving the index would wait for, and shows how far it is.

    `path` is what people call the index. If it is interrupted, or a disk is too full, the index is
    closed as it is, so that nothing more is waited for.
    """
    if not index.options.min_merge:
        return
    progress.then("merging files", "row")
    with held_back() as signals:

        def tell(done: int, total: int) -> None:
            if signals:
                raise _Enough
            progress.tell(done, total)

        try:
            index.compact(progress=tell)
            return
        except _Enough:
            ended = "merging its files was interrupted"
        except (SimindexError, OSError, MemoryError) as error:
            ended = f"its files were not merged: {error}"
        index.close()
    if not quiet:
        say(f"{path} is complete, but {ended}; `simindex compact {path}` merges them")
