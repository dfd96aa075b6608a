"""Functions of Python modules as documents: texts that are on any machine with Python.

    library/queue.py      def task_done(self): ...       -> "queue.py:57 Queue.task_done"
    library/json/tool.py  def main(): ...                -> "json/tool.py:14 main"
"""

from __future__ import annotations

import ast
import os
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path

from simindex.values import dataclass

LEAST_WORDS = 40
"""Shorter functions are alike by their form alone."""

EXCLUDED = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "encodings", "test", "tests", "idle_test"}
)
"""Folders that are not entered: other packages, generated tables, tests."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method, with the module and the line that it begins in."""

    module: str
    line: int
    name: str
    text: str

    @property
    def key(self) -> str:
        """Such as `json/tool.py:14 main`; no other function below the folder has the same."""
        return f"{self.module}:{self.line} {self.name}"


def modules_below(root: str | Path) -> Iterator[Path]:
    """The modules in a folder and the folders in it, in the order of their names."""
    for folder, inner, files in os.walk(root):
        inner[:] = sorted(set(inner) - EXCLUDED)
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))


def functions_of(module: Path, root: str | Path) -> list[Function]:
    """The top-level functions and the methods of a module that have LEAST_WORDS words or more.

    None of a file that is no module of this version of Python.
    """
    try:
        with tokenize.open(module) as file:
            text = file.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about old escapes in the texts of others
            tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    relative = Path(os.path.relpath(module, root)).as_posix()
    name = os.fsencode(relative).decode("utf-8", "backslashreplace")
    lines = text.split("\n")  # as `ast` counts them: a form feed ends no line
    found = (
        Function(name, node.lineno, called, "\n".join(lines[node.lineno - 1 : node.end_lineno]))
        for called, node in _definitions(tree.body, "")
    )
    return [function for function in found if len(function.text.split()) >= LEAST_WORDS]


def _definitions(
    body: list[ast.stmt], within: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, f"{within}{node.name}.")
