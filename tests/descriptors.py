"""What this process has open."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def open_files() -> list[str]:
    """Files and folders, one for each descriptor.

    What other tests have left may end at any time, so connections, pipes and the null device do not
    count.
    """
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # the descriptor that lists them
            found.append(str(entry.readlink()))
    return [target for target in found if target.startswith("/") and target != os.devnull]
