"""What stands for a half of an index until a call needs it: most commands of the shell need one."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any


class DeferredHalf:
    """Has the attributes of what `make` gives, which is called when one is first asked for.

    It does not put that into its own place: it would have to know its owner for that, and an owner
    that it knows does not go once nobody else refers to it. Threads that ask at once get the same.
    """

    __slots__ = ("_lock", "_made", "_make")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make, self._made, self._lock = make, None, RLock()

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._make()
        return getattr(self._made, name)
