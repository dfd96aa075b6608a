"""Modules that import an optional package at their top raised a bare ModuleNotFoundError."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import simindex

PACKAGE = Path(simindex.__file__).parent
PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"

PROGRAM = """
import importlib, json, sys

allowed, modules = json.load(sys.stdin)

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
import simindex
for name in modules:
    try:
        importlib.import_module(name)
    except simindex.MissingExtra as error:
        print(f"{name}\\t{error.remedy}")
    except ImportError as error:
        print(f"{name}\\tbare {type(error).__name__}: {error}")
"""


@pytest.mark.slow
def test_without_optional_packages_modules_load_or_say_what_to_install() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    needed = [re.split(r"[^\w]", one)[0] for one in project["dependencies"]]
    modules = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py")) if path.stem != "__main__"
    ]
    finished = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        input=json.dumps([["simindex", *needed, *sys.stdlib_module_names], modules]),
        capture_output=True, text=True, check=False,
    )
    assert finished.returncode == 0, finished.stderr
    said = dict(line.split("\t") for line in finished.stdout.splitlines())
    assert {name: remedy for name, remedy in said.items() if "pip install" not in remedy} == {}
    assert said["simindex.distributed.spark"] == "pip install 'simindex[spark]'"
    assert said["simindex.distributed.ray"] == "pip install 'simindex[ray]'"
