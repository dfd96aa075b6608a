"""What an index holds, as `simindex export` tells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def keys_of(run: Callable[..., Any], objects: Any, index: str) -> list[str]:
    return sorted(row["key"] for row in objects(run("export", index).stdout))
