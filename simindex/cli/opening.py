"""How a command opens an index: only what it asks for is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simindex.index.handle import Mode
    from simindex.index.index import Index
    from simindex.options import IndexOptions


def open_index(
    path: str | Path, mode: Mode = "r", *, options: IndexOptions | None = None,
    overwrite: bool = False, refresh: bool = True, wait_s: float = 0.0,
) -> Index:
    """See `simindex.open`."""
    from simindex.index.opening import opened

    return opened(
        path, mode, options=options, overwrite=overwrite, refresh=refresh, wait_s=wait_s, brief=True
    )
