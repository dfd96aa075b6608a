"""What is logged belongs to the application: loggers have names by folder, and nothing else."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "simindex"
CONFIGURING = {"basicConfig", "addHandler", "setLevel", "dictConfig", "disable", "captureWarnings"}


@cache
def calls() -> list[tuple[str, str, ast.Call]]:
    """The calls of methods and of functions of modules: the file, what is called, and the call."""
    return [
        (path.relative_to(PACKAGE).as_posix(), node.func.attr, node)
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]


def test_loggers_are_named_by_their_folder() -> None:
    made = [
        (path, ast.unparse(call.args[0])) for path, called, call in calls()
        if called == "getLogger"
    ]
    assert len(made) >= 10
    assert {name for _, name in made} == {"__package__"}
    assert not [path for path, _ in made if "/" not in path], "a module at the top has no folder"


def test_nothing_configures_logging() -> None:
    assert [
        f"{path}:{call.lineno}" for path, called, call in calls() if called in CONFIGURING
    ] == []


def test_importing_leaves_logging_as_it_is() -> None:
    code = (
        "import logging, simindex, simindex.cli; own = logging.getLogger('simindex'); "
        "assert not (logging.root.handlers or own.handlers or own.level)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("path", ["docs/how-to/operations.md"])
def test_the_page_names_every_logger(path: str) -> None:
    page = (PACKAGE.parent / path).read_text(encoding="utf-8")
    for file, called, _ in calls():
        if called == "getLogger":
            assert f"`simindex.{file.split('/')[0]}`" in page, file
