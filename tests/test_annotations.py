"""What type checkers of users see: `pyright --verifytypes simindex` prints 100 %.

Each attribute of a public class has an annotation, because checkers may infer other types. pyright
itself runs where it is installed, on the package as users have it.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest

import simindex

PACKAGE = Path(simindex.__file__).resolve().parent


def unannotated(source: str) -> list[str]:
    """CLASS.ATTRIBUTE of what is assigned to `self` and has no annotation in the class.

    A parameter that is assigned as it is has the annotation of the parameter.
    """
    found: set[str] = set()
    for owner in ast.walk(ast.parse(source)):
        if not isinstance(owner, ast.ClassDef) or owner.name.startswith("_"):
            continue
        assigned, known = set(), set()
        for member in owner.body:
            if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                known.add(member.target.id)
            elif isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                known.add(member.name)
                parameters = {one.arg for one in ast.walk(member.args) if isinstance(one, ast.arg)}
                for target, value in _assignments(member):
                    same = isinstance(value, ast.Name) and value.id in parameters
                    (known if same else assigned).add(_attribute(target))
                known.update(
                    _attribute(node.target) for node in ast.walk(member)
                    if isinstance(node, ast.AnnAssign)
                )
        found.update(
            f"{owner.name}.{name}" for name in assigned - known if not name.startswith("_")
        )
    return sorted(found)


def _assignments(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Targets, with their values."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For):
            yield from _pairs(node.target, None)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield from _pairs(node.optional_vars, None)


def _pairs(
    target: ast.expr, value: ast.expr | None
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Of several targets, each has no value of its own: checkers take no type from there."""
    if isinstance(target, ast.Tuple):
        for one in target.elts:
            yield from _pairs(one, None)
    else:
        yield target, value


def _attribute(target: ast.expr) -> str:
    """The attribute of `self` that is assigned, or the name "_"."""
    if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
        return "_"
    return target.attr if target.value.id == "self" else "_"


@pytest.mark.slow
def test_attributes_of_public_classes_have_annotations() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}: {name}" for path in sorted(PACKAGE.rglob("*.py"))
        for name in unannotated(path.read_text(encoding="utf-8"))
    }
    print(*sorted(found), sep="\n")
    assert not found


@pytest.mark.slow
def test_pyright_knows_every_type_of_the_public_interface(tmp_path: Path) -> None:
    """It reads the package of an environment, so it gets a copy in one."""
    pyright = shutil.which("pyright")
    if pyright is None or shutil.which("node") is None:  # without node it would download one
        pytest.skip("pyright and node are not installed")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", tmp_path],
        capture_output=True, text=True, check=False,
    )
    assert made.returncode == 0, made.stderr
    (site,) = (tmp_path / "lib").glob("python3.*/site-packages")
    shutil.copytree(PACKAGE, site / "simindex", ignore=shutil.ignore_patterns("*.so", "src"))
    (site / "numpy.pth").write_text(str(Path(numpy.__file__).parents[1]), encoding="utf-8")
    path = os.pathsep.join([str(tmp_path / "bin"), os.environ.get("PATH", "")])
    checked = subprocess.run(
        [pyright, "--verifytypes", "simindex", "--ignoreexternal"],
        cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if " error: " in line]
    assert checked.returncode == 0 and errors == [], (errors, checked.stdout[-2000:])
    assert "completeness score: 100%" in checked.stdout


def test_an_attribute_is_found_unless_it_is_annotated() -> None:
    source = """
class Seen:
    declared: int

    def __init__(self, given: int, **named: int) -> None:
        self.copied = given
        self.also, self._other = given, 3
        self.declared = 4
        self.annotated: int = 5
        self._private = 6
        local = self.found = 7

    def later(self) -> None:
        with open("x") as self.file:
            self.annotated += 1

class _Unseen:
    def __init__(self) -> None:
        self.whatever = 1
"""
    assert unannotated(source) == ["Seen.also", "Seen.file", "Seen.found"]
