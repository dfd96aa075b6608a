"""Directories that may not be written, and commands that this binds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def protect(path: Path) -> None:
    for inside in sorted(path.rglob("*")):
        inside.chmod(0o555 if inside.is_dir() else 0o444)
    path.chmod(0o555)


def unprivileged() -> list[str]:
    """What to put before a command so that permissions bind it, also where this is root."""
    if os.geteuid() != 0:
        return []
    powers = "-dac_override,-dac_read_search"
    command = ["setpriv", "--bounding-set", powers, "--inh-caps", powers]
    if shutil.which("setpriv") is None:
        pytest.skip("permissions do not bind root, and there is no setpriv to lay its powers down")
    tried = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"root's powers cannot be laid down here: {tried.stderr.strip()}")
    return command
