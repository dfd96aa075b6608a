"""Who may import whom, and the one door of each foreign thing, read from the source.

    edges     cli  distributed  integrations  inputs  __main__
    public    simindex itself: what users import
    engine    index  changing  handle  creation  searching  snapshot  writer  planner  calibration
              model  costs
              machine  forecast  explanation  compaction  check  pairs  clusters  skew  auditing
              answering  spotchecks  opening  bounded  ingestion  recent  deduplication
              segmentfiles  merging  nearest  nearest_plan  nearest_recall
              repair  survey  salvage  lineage  beside  stored_values
    methods
    storage
    simhash
    _kernels
    words     errors  options  pairing  records  threads: importable by all, importing only
              each other

1. No import points up, wherever in a module it stands. 2. A module that is in no layer is a breach,
until it is placed here. 3. Each foreign thing is imported through its door only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "simindex"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("_kernels",),
    ("simhash",),
    ("storage",),
    ("methods",),
    (
        "index", "changing", "change", "handle", "admission", "statistics", "creation", "buffer",
        "ownership", "searching",
        "snapshot", "writer",
        "planner", "calibration", "model", "costs", "machine", "forecast", "explanation",
        "compaction", "check", "pairs", "clusters", "designs", "skew", "auditing", "answering",
        "spotchecks", "opening", "bounded", "stored_pairs", "stored_rows", "tiles", "index_pairs",
        "index_clusters", "ingestion", "recent", "deduplication", "segmentfiles", "merging",
        "nearest", "nearest_plan", "nearest_recall", "repair", "survey", "salvage", "lineage",
        "beside", "stored_values",
    ),
    ("",),  # the package itself
    ("cli", "distributed", "integrations", "inputs", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
ENGINE = RANK["index"]
WORDS = frozenset({"clustering", "errors", "options", "pairing", "records", "threads"})
NEVER_STORAGE = frozenset({"inputs", "simhash"})

DOORS: dict[str, tuple[str, ...]] = {
    "lmdb": ("storage/catalog.py", "storage/headers.py", "storage/environment.py"),
    "click": ("cli/",),
}
"""Foreign package -> files and folders that may import it."""

OPENING_DOOR = "storage/descriptor.py"
OPENING_OS = frozenset({"open", "close", "dup", "fdopen", "pipe"})
"""Of `os`: a number that nobody owns is lost by an interrupt."""

WRITING_DOOR = "storage/disk.py"
WRITES_BESIDE_IT = {
    # How a file is to be opened, told to the door; one is to keep its space without a name.
    "storage/format.py": frozenset({"O_RDWR", "O_WRONLY"}),
    "storage/environment.py": frozenset({"O_RDWR"}),
}
WRITING_OS = frozenset(
    {"fsync", "fdatasync", "rename", "renames", "replace", "unlink", "remove", "truncate",
     "ftruncate", "pwrite", "write", "writev", "link", "symlink", "mkdir", "makedirs", "rmdir",
     "posix_fallocate"}
)
WRITING_METHODS = frozenset(
    {"write_bytes", "write_text", "unlink", "touch", "tofile", "rename", "mkdir", "rmdir", "rmtree",
     "write_back"}
)
WRITING_FLAGS = frozenset({"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"})

FORBIDDEN_IMPORTS = frozenset(
    {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal", "yaml", "joblib"}
)
FORBIDDEN_CALLS = frozenset({"eval", "exec"})


def imported(path: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of all that the module at `path` below the package imports."""
    here = ["simindex", *path.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}"
        elif isinstance(node, ast.Call) and called(node).split(".")[-1] in (
            "import_module", "__import__"
        ):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield node.lineno, name.value
            else:
                yield node.lineno, "simindex.<computed>"


def called(node: ast.Call) -> str:
    """Dotted name of what is called: `os.fsync`, `open`, `.unlink` for a method of a value."""
    target = node.func
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        owner = target.value.id if isinstance(target.value, ast.Name) else ""
        return f"{owner}.{target.attr}"
    return ""


def part_of(name: str) -> str:
    """The layer's member a full name belongs to: `simindex.storage.table.Table` -> `storage`.

    A name taken from the package itself (`simindex.find_all`) belongs to the package, "".
    """
    parts = name.split(".")
    if len(parts) == 2 and parts[1] not in RANK and parts[1] not in WORDS:
        return ""
    return parts[1] if len(parts) > 1 else ""


def layer_breaches(path: str, tree: ast.AST) -> Iterator[str]:
    home = path.removesuffix(".py").split("/")[0]
    home = "" if home == "__init__" else home
    if home not in RANK and home not in WORDS:
        yield f"{path}: is in no layer: place it in LAYERS"
        return
    for line, name in imported(path, tree):
        if name.split(".")[0] != "simindex":
            continue
        part = part_of(name)
        if part not in RANK and part not in WORDS:
            yield f"{path}:{line}: imports {name}, which is in no layer"
        elif home in WORDS:
            if part not in WORDS:
                yield f"{path}:{line}: {home} serves all and imports {name}"
        elif home == "_kernels":
            if part != "_kernels":
                yield f"{path}:{line}: the kernels import {name}"
        elif part in WORDS:
            continue
        elif RANK[part] > RANK[home]:
            yield f"{path}:{line}: imports {name}, which is above it"
        elif part == "storage" and home in NEVER_STORAGE:
            yield f"{path}:{line}: {home} imports {name}"


def door_breaches(path: str, tree: ast.AST) -> Iterator[str]:
    for line, name in imported(path, tree):
        package = name.split(".")[0]
        if package in FORBIDDEN_IMPORTS:
            yield f"{path}:{line}: imports {package}, which is used nowhere"
        doors = DOORS.get(package)
        if doors is not None and not any(
            path == door or (door.endswith("/") and path.startswith(door)) for door in doors
        ):
            yield f"{path}:{line}: imports {package} beside its door {doors}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if called(node) in FORBIDDEN_CALLS:
                yield f"{path}:{node.lineno}: calls {called(node)}"
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle" and not is_constant(keyword.value, False):
                    yield f"{path}:{node.lineno}: allows pickle"


def is_constant(node: ast.AST, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def mode_writes(node: ast.Call, place: int) -> bool:
    """Whether an `open` whose mode is argument `place` may write; a computed mode may."""
    modes = [k.value for k in node.keywords if k.arg == "mode"] or node.args[place : place + 1]
    if not modes:
        return False
    mode = modes[0]
    if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        return True
    return bool(set("wax+") & set(mode.value))


def opening_breaches(path: str, tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if path == OPENING_DOOR:
            return
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
            names = [node.attr]
        else:
            continue
        for name in OPENING_OS.intersection(names):
            yield f"{path}:{node.lineno}: takes os.{name} beside {OPENING_DOOR}"


def writing_breaches(path: str, tree: ast.AST) -> Iterator[str]:
    home = path.removesuffix(".py").split("/")[0]
    stored = home == "storage" or RANK.get(home) == ENGINE
    if not stored or path == WRITING_DOOR:
        return
    allowed = WRITES_BESIDE_IT.get(path, frozenset())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            for alias in node.names:
                if alias.name in WRITING_OS | WRITING_FLAGS:
                    yield f"{path}:{node.lineno}: imports os.{alias.name} beside {WRITING_DOOR}"
        elif isinstance(node, ast.Attribute) and node.attr in WRITING_FLAGS - allowed:
            yield f"{path}:{node.lineno}: opens with {node.attr} beside {WRITING_DOOR}"
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func).startswith("disk.system."):
                continue
            name = called(node)
            owner, _, attribute = name.rpartition(".")
            writes = (
                (owner == "os" and attribute in WRITING_OS)
                or ("." in name and attribute in WRITING_METHODS)
                or (name in ("open", "io.open", "os.fdopen") and mode_writes(node, 1))
                or (name == "np.memmap" and not is_read_only_map(node))
                or (
                    attribute == "open" and "." in name and owner not in ("io", "os", "lmdb")
                    and mode_writes(node, 0)
                )
            )
            shown = attribute if owner == "os" else f".{attribute}"
            if writes and shown not in allowed:
                yield f"{path}:{node.lineno}: {name} writes a file beside {WRITING_DOOR}"


def is_read_only_map(node: ast.Call) -> bool:
    modes = [k.value for k in node.keywords if k.arg == "mode"] or node.args[2:3]
    return len(modes) == 1 and isinstance(modes[0], ast.Constant) and modes[0].value == "r"


def breaches(path: str, source: str) -> list[str]:
    """Every breach in the module at `path` (relative to the package, with `/`)."""
    tree = ast.parse(source)
    return [
        *layer_breaches(path, tree), *door_breaches(path, tree), *opening_breaches(path, tree),
        *writing_breaches(path, tree),
    ]


def modules() -> list[str]:
    return sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py"))


def test_the_checker_sees_the_whole_package() -> None:
    assert {"__init__.py", "errors.py", "records.py", "_kernels/__init__.py"} <= set(modules())


@pytest.mark.parametrize("path", modules())
def test_module_keeps_its_layer_and_its_doors(path: str) -> None:
    found = breaches(path, (PACKAGE / path).read_text(encoding="utf-8"))
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        # an import that points up, in each way of writing it
        ("storage/table.py", "from simindex.methods import psm"),
        ("storage/table.py", "from simindex import methods"),
        ("storage/table.py", "import simindex.index"),
        ("storage/table.py", "import numpy, simindex.cli as c"),
        ("storage/table.py", "from simindex import Index"),
        ("storage/table.py", "import simindex"),
        ("storage/table.py", "from .. import methods"),
        ("storage/table.py", "from ..methods.psm import probe"),
        ("storage/table.py", "def late():\n    from simindex.planner import plan"),
        ("storage/table.py", "if TYPE_CHECKING:\n    from simindex.index import Index"),
        ("storage/table.py", "import importlib\nimportlib.import_module('simindex.index')"),
        ("storage/table.py", "from importlib import import_module as i\n__import__(name)"),
        ("methods/psm.py", "from simindex.planner import plan"),
        ("methods/__init__.py", "from ..index import Index"),
        ("index.py", "from simindex.inputs import jsonl"),
        ("index.py", "from .cli import main"),
        ("__init__.py", "from simindex.cli import main"),
        # simhash and inputs know no storage
        ("simhash/vosh.py", "from simindex.storage import table"),
        ("simhash/vosh.py", "from ..storage.table import Table"),
        ("inputs/jsonl.py", "from simindex.storage.table import Table"),
        # what serves all serves itself only
        ("records.py", "from simindex._kernels import _native"),
        ("errors.py", "from simindex import Index"),
        ("options.py", "from simindex.simhash import vosh"),
        ("_kernels/__init__.py", "from simindex.errors import InvalidBatch"),
        # modules that nobody placed
        ("utils.py", ""),
        ("helpers/deep/thing.py", "import os"),
        ("index.py", "from simindex.helpers import thing"),
        ("cli/app.py", "from ..helpers.deep import thing"),
        # doors
        ("storage/segment.py", "import lmdb"),
        ("index.py", "from lmdb import Environment"),
        ("inputs/jsonl.py", "import click"),
        ("distributed.py", "from click import echo"),
        ("clix.py", "import click"),
        # descriptors
        ("storage/segment.py", "import os\nos.open(p, os.O_RDONLY)"),
        ("cli/app.py", "import os\nlist(map(os.close, held))"),
        ("inputs/jsonl.py", "from os import pipe"),
        # writing
        ("storage/segment.py", "import os\nos.fsync(3)"),
        ("storage/segment.py", "from os import replace"),
        ("storage/segment.py", "import os\nos.open(p, os.O_RDWR)"),
        ("storage/segment.py", "open(p, 'wb')"),
        ("storage/segment.py", "open(p, mode='r+b')"),
        ("storage/segment.py", "open(p, mode)"),
        ("storage/segment.py", "path.open('ab')"),
        ("storage/segment.py", "(path / name).open(mode='x')"),
        ("storage/segment.py", "(path / name).unlink(missing_ok=True)"),
        ("storage/environment.py", "import os\nos.fsync(3)"),
        ("storage/environment.py", "import os\nos.unlink(p)"),
        ("storage/environment.py", "open(p, 'wb')"),
        ("storage/environment.py", "path.unlink()"),
        ("storage/format.py", "import os\nos.fsync(3)"),
        ("storage/format.py", "path.rename(to)"),
        ("storage/format.py", "import os\nos.posix_fallocate(3, 0, 9)"),
        ("storage/format.py", "_native.write_back(3, 0, 9, True)"),
        ("creation.py", "import shutil\nshutil.rmtree(path)"),
        ("creation.py", "path.mkdir()"),
        ("compaction.py", "import os\nos.rename(a, b)"),
        ("compaction.py", "path.write_bytes(b'')"),
        ("index.py", "rows.tofile(path)"),
        ("index.py", "np.memmap(path, np.uint64, 'r+')"),
        ("index.py", "np.memmap(path, np.uint64)"),
        # never
        ("index.py", "import pickle"),
        ("cli/app.py", "from yaml import safe_load"),
        ("inputs/table.py", "eval('1')"),
        ("inputs/table.py", "np.load(path, allow_pickle=True)"),
    ],
)
def test_a_planted_breach_is_found(path: str, source: str) -> None:
    assert breaches(path, source) != []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("storage/table.py", "from simindex._kernels import _native\nfrom simindex import errors"),
        ("storage/table.py", "from . import envelope\nfrom .format import write"),
        ("storage/catalog.py", "import lmdb"),
        ("storage/disk.py", "import os\nos.fsync(3)\nopen(p, 'wb')"),
        ("storage/segment.py", "open(p)\nopen(p, 'rb')\np.open()\nnp.memmap(p, np.uint8, 'r')"),
        ("storage/environment.py", "import os\ndisk.system.create(p, os.O_RDWR)"),
        ("storage/format.py", "disk.system.unlink(p)\ndisk.system.rename(p, to)"),
        ("storage/segment.py", "Descriptor(p, os.O_RDONLY)\n'a'.replace('b', 'c')"),
        ("storage/descriptor.py", "import os\nos.open(p, os.O_RDONLY)"),
        ("methods/psm.py", "from simindex.simhash.vosh import flips"),
        ("index.py", "from simindex.storage import segment\nimport simindex.planner"),
        ("__init__.py", "from simindex.index import Index\nfrom simindex.errors import *"),
        ("cli/app.py", "import click\nfrom simindex import Index, find_all\nopen('out', 'w')"),
        ("inputs/jsonl.py", "import re\nre.compile('x')\nfrom simindex.records import Batch"),
        ("options.py", "from simindex.errors import InvalidOption"),
        ("_kernels/__init__.py", "from simindex._kernels import _native"),
        ("index.py", "model.eval()"),
    ],
)
def test_what_is_allowed_is_not_a_breach(path: str, source: str) -> None:
    assert breaches(path, source) == []
