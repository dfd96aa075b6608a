"""The built package: one library for every machine, and a stub that says what is in it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from simindex._kernels import LEVELS, _native

ROOT = Path(__file__).resolve().parents[1]
STUB = ROOT / "simindex" / "_kernels" / "_native.pyi"
DEFAULT_LEVEL = "from simindex._kernels import _native; print(_native.default_level())"


def stubs() -> dict[str, list[str]]:
    """Argument names of each function in the stub, and of each class's constructor."""
    described = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        made = node.body[0] if isinstance(node, ast.ClassDef) else node
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and isinstance(made, ast.FunctionDef):
            arguments = (*made.args.args, *made.args.kwonlyargs)
            described[node.name] = [a.arg for a in arguments if a.arg != "self"]
        elif isinstance(node, ast.ClassDef):  # an error, made as any other
            described[node.name] = []
    return described


def bound() -> dict[str, list[str]]:
    """Argument names of each function and constructor bound, from its signature line."""
    functions = {}
    for name in dir(_native):
        if name.startswith("_"):
            continue
        thing = getattr(_native, name)
        made = thing.__init__ if isinstance(thing, type) else thing
        signature = (made.__doc__ or "").splitlines()[0]
        arguments = signature.partition("(")[2].rpartition(") -> ")[0]
        functions[name] = re.findall(r"(?:^|, )(\w+): ", arguments)
    return functions


def test_every_bound_function_is_in_the_stub_with_its_argument_names() -> None:
    described = stubs()
    for name, arguments in bound().items():
        assert described.get(name) == arguments, name


def test_every_function_of_the_stub_is_bound() -> None:
    assert sorted(set(stubs()) - set(bound())) == []


def test_narrow_levels_come_before_wide_ones() -> None:
    assert ("portable", "avx2", "avx512", "avx512-vpopcntdq")[: len(LEVELS)] == LEVELS


@pytest.mark.parametrize("name", LEVELS)
def test_the_environment_names_the_default_level(name: str) -> None:
    found = subprocess.run(
        [sys.executable, "-P", "-c", DEFAULT_LEVEL],
        env={**os.environ, "SIMINDEX_SIMD": name},
        capture_output=True, text=True, check=True,
    )
    assert int(found.stdout) == LEVELS.index(name)


def test_nothing_is_compiled_for_the_building_machine_only() -> None:
    """Wider instructions come from target attributes, chosen at run time."""
    builds = [ROOT / "CMakeLists.txt", ROOT / "pyproject.toml", ROOT / "Makefile"]
    for path in builds:
        assert not re.search(r"-m(arch|cpu|tune|avx|sse|bmi|popcnt)", path.read_text("utf-8"))
