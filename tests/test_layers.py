"""Who may import whom, and the one door of each foreign thing, read from the source.

    LAYERS    folders, lowest first; each imports from itself and from those before it. A folder's
              `__init__.py` that imports something stands above the folders within it
    WORDS     the modules at the top that all may import

1. No import points up, wherever in a module it stands. 2. A folder that has no rank is a breach,
until it is placed here. 3. Modules of a folder form no circle. 4. Each foreign thing is imported
through its door only. 5. No public call climbs: what a function calls has its rank or a lower one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import CodeType

import pytest
import walks

import simindex

PACKAGE = Path(__file__).resolve().parents[1] / "simindex"

WORDS = frozenset({"errors", "checks", "options", "arrays", "values"})
"""Modules at the top that serve all, and import only each other."""

LAYERS: tuple[str, ...] = (
    "words",
    "resources",
    "_kernels",
    "records",
    "bits",
    "simhash",
    "storage/files",
    "storage/tables",
    "storage/catalog",
    "storage",
    "methods",
    "planning",
    "query",
    "pairs",
    "advising",
    "repair",
    "writing",
    "backup",
    "index",
    "",  # simindex itself: what users import
    "compat",
    "distributed",
    "distributed/ray",
    "inputs",
    "outputs",
    "reporting",
    "integrations",
    "cli",
    "cli/dedup",
    "cli/commands",
    "cli/commands/ray",
    "cli/__init__",
    "__main__",
)
KERNELS_OF_RECORDS = ("arrow.py", "stars.py")
"""Records are values. These modules make other values of them: columns of Arrow, stars of pairs."""

RANK = {name: rank for rank, name in enumerate(LAYERS)}

EDGES = frozenset({
    "inputs", "outputs", "reporting", "integrations", "cli", "cli/dedup", "cli/commands",
    "cli/commands/ray",
    "cli/__init__", "__main__",
})
"""Where files are written that are not part of an index."""

NEVER_STORAGE = frozenset({"inputs", "outputs", "bits", "simhash"})

MOST_AT_THE_TOP = 8
"""Modules beside the folders, `__init__` and `__main__` among them."""

DOORS: dict[str, tuple[str, ...]] = {
    "lmdb": ("storage/catalog/",),
    "click": ("cli/",),
    "ray": ("distributed/ray/",),
    "pyspark": ("distributed/spark.py",),
}
"""Foreign package -> files and folders that may import it."""

OPENING_DOOR = "storage/files/descriptor.py"
OPENING_OS = frozenset({"open", "close", "dup", "fdopen", "pipe"})
"""Of `os`: a number that nobody owns is lost by an interrupt."""

WRITING_DOOR = "storage/files/disk.py"
WRITES_BESIDE_IT = {
    # How a file is to be opened, told to the door; one is to keep its space without a name.
    "storage/files/durable.py": frozenset({"O_RDWR"}),
    "storage/files/locks.py": frozenset({"O_RDWR"}),
    "storage/files/removal.py": frozenset({"O_WRONLY"}),
    "storage/catalog/lmdb_files.py": frozenset({"O_RDWR"}),
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

LATE = {
    ("__init__.py", "import_module(f'simindex.{_HOME[name]}')"): "simindex._HOMES",
    ("cli/__init__.py", "import_module(f'simindex.cli.commands.{name}')"):
        "simindex.cli.commands.COMMANDS",
    ("inputs/formats.py", "import_module(f'simindex.inputs.{_HOME[name]}')"):
        "simindex.inputs._READERS",
}
"""Imports of a module that a table names, when it is needed: its folder, and the table."""

GIVEN = frozenset({
    ("storage/files/refusals", "typed.<locals>.checked"),
    ("storage/files/refusals", "each"),
    ("storage/tables/sorted_rows", "SortedRows.directory"),
    ("storage/segment_files", "SegmentFiles.merge"),
})
"""Functions that call what they are given: two translate the errors of a public call, one loads a
directory when it is first needed, and a merge tells how far it is. See decision 19."""

FORBIDDEN_IMPORTS = frozenset(
    {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "shelve", "marshal", "yaml", "joblib"}
)
FORBIDDEN_CALLS = frozenset({"eval", "exec"})
COMPILES = "values.py"
"""It writes `__init__` of a class from the names of its fields, as the standard library does."""


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
            elif (path, ast.unparse(node)) in LATE:
                for module in names_in(LATE[path, ast.unparse(node)], tree):
                    yield node.lineno, module
            else:
                yield node.lineno, "simindex.<computed>"


def names_in(table: str, tree: ast.AST) -> list[str]:
    """The modules that a table at the top of a module lists: its keys, or its items."""
    folder, _, name = table.rpartition(".")
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            with suppress(ValueError):  # it is not written out
                return [f"{folder}.{module}" for module in ast.literal_eval(node.value)]
    return [f"{folder}.<computed>"]


def called(node: ast.Call) -> str:
    """Dotted name of what is called: `os.fsync`, `open`, `.unlink` for a method of a value."""
    target = node.func
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        owner = target.value.id if isinstance(target.value, ast.Name) else ""
        return f"{owner}.{target.attr}"
    return ""


@cache
def modules() -> tuple[str, ...]:
    """Paths below the package, with `/`."""
    return tuple(sorted(p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py")))


@cache
def folders() -> frozenset[str]:
    """Dotted names of the packages below simindex."""
    return frozenset(
        path.removesuffix("/__init__.py").replace("/", ".")
        for path in modules() if path.endswith("/__init__.py")
    )


def layer_of_path(path: str) -> str:
    """The layer of the module at a path: its folder, or `words`, "" or `cli/__init__`."""
    folder, _, name = path.removesuffix(".py").rpartition("/")
    if not folder:
        return "words" if name in WORDS else {"__init__": ""}.get(name, name)
    opened = f"{folder}/{name}"
    return opened if opened in RANK else folder


def layer_of_name(name: str) -> str:
    """The layer that a full name belongs to: `simindex.bits.vosh.flips` -> `bits`.

    A name taken from a package itself (`simindex.find_all`) belongs to the package.
    """
    parts = name.split(".")[1:]
    if not parts or (parts[0] not in WORDS and not is_package(parts[0])):
        # What simindex itself gives; but a module that nobody placed is not one of its names.
        known = not parts or not (PACKAGE / f"{parts[0]}.py").exists()
        return "" if known and public(parts) else ".".join(parts)
    if parts[0] in WORDS:
        return "words"
    folder = parts[0]
    for part in parts[1:]:
        if not is_package(f"{folder}.{part}"):
            break
        folder = f"{folder}.{part}"
    home = folder.replace(".", "/")
    rest = parts[folder.count(".") + 1 :]
    if f"{home}/__init__" in RANK and not (rest and (PACKAGE / home / f"{rest[0]}.py").exists()):
        return f"{home}/__init__"  # what the folder itself gives
    return home


def public(parts: list[str]) -> bool:
    return not parts or parts[0] in simindex.__all__


def is_package(dotted: str) -> bool:
    return dotted in folders() or dotted.replace(".", "/") in RANK


def layer_breaches(path: str, tree: ast.AST) -> Iterator[str]:
    home = layer_of_path(path)
    if home not in RANK:
        yield f"{path}: is in no layer: place its folder in LAYERS"
        return
    for line, name in imported(path, tree):
        if name.split(".")[0] != "simindex":
            continue
        part = layer_of_name(name)
        if part not in RANK:
            yield f"{path}:{line}: imports {name}, which is in no layer"
        elif RANK[part] > RANK[home]:
            yield f"{path}:{line}: imports {name}, which is above it"
        elif home == "_kernels" and part != home:
            yield f"{path}:{line}: the kernels import {name}"
        elif home == "records" and part == "_kernels" and Path(path).name not in KERNELS_OF_RECORDS:
            yield f"{path}:{line}: records are values, and import {name}"
        elif part.startswith("storage") and home in NEVER_STORAGE:
            yield f"{path}:{line}: {home} imports {name}"


def module_of(name: str, known: Mapping[str, object]) -> str | None:
    """The module among `known` that a full name is, or is of."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or None


def circles(sources: Mapping[str, str]) -> Iterator[str]:
    """Circles of imports among modules of one folder; `sources` by paths below the package."""
    dotted = {
        "simindex." + path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
        for path in sources if path != "__init__.py"
    }
    below: dict[str, set[str]] = {}
    for module, path in dotted.items():
        named = (module_of(name, dotted) for _, name in imported(path, ast.parse(sources[path])))
        below[module] = {
            other for other in named
            if other and other != module and layer_of_path(dotted[other]) == layer_of_path(path)
        }
    try:
        tuple(TopologicalSorter(below).static_order())
    except CycleError as error:
        yield " <- ".join(error.args[1])


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
            nothing = len(node.args) == 1 and is_constant(node.args[0], "")
            if called(node) in FORBIDDEN_CALLS and not nothing and path != COMPILES:
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
    if layer_of_path(path) in EDGES or path == WRITING_DOOR:
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


LATE_HERE = "import_module(f'simindex.{_HOME[name]}')"


def test_the_checker_sees_the_whole_package() -> None:
    some = {"__init__.py", "errors.py", "records/batch.py", "_kernels/__init__.py"}
    assert some <= set(modules())


def test_the_top_holds_folders_and_few_modules() -> None:
    assert len([path for path in modules() if "/" not in path]) <= MOST_AT_THE_TOP


def test_every_folder_has_a_rank_and_every_rank_a_folder() -> None:
    used = {layer_of_path(path) for path in modules()}
    assert used == set(LAYERS)


@pytest.mark.parametrize("folder", sorted(folders()))
def test_a_folder_says_what_it_means(folder: str) -> None:
    """One sentence, as the first line of its `__init__.py`."""
    source = (PACKAGE / folder.replace(".", "/") / "__init__.py").read_text(encoding="utf-8")
    first = (ast.get_docstring(ast.parse(source)) or "").split("\n")[0]
    assert first.endswith((".", ":")), folder


def test_modules_of_a_folder_form_no_circle() -> None:
    sources = {path: (PACKAGE / path).read_text(encoding="utf-8") for path in modules()}
    assert list(circles(sources)) == []


@pytest.mark.parametrize("path", modules())
def test_module_keeps_its_layer_and_its_doors(path: str) -> None:
    found = breaches(path, (PACKAGE / path).read_text(encoding="utf-8"))
    assert found == [], "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        # an import that points up, in each way of writing it
        ("storage/tables/table.py", "from simindex.methods import psm"),
        ("storage/tables/table.py", "from simindex import methods"),
        ("storage/tables/table.py", "import simindex.index"),
        ("storage/tables/table.py", "import numpy, simindex.cli as c"),
        ("storage/tables/table.py", "from simindex import Index"),
        ("storage/tables/table.py", "import simindex"),
        ("storage/tables/table.py", "from ... import methods"),
        ("storage/tables/table.py", "from ...methods.psm import probe"),
        ("storage/tables/table.py", "def late():\n    from simindex.planning.planner import plan"),
        (
            "storage/tables/table.py",
            "if TYPE_CHECKING:\n    from simindex.index.index import Index",
        ),
        (
            "storage/tables/table.py",
            "import importlib\nimportlib.import_module('simindex.index')",
        ),
        ("storage/tables/table.py", "from importlib import import_module as i\n__import__(name)"),
        ("methods/psm.py", "from simindex.planning.planner import plan"),
        ("methods/__init__.py", "from ..index import Index"),
        ("index/index.py", "from simindex.inputs import json_lines"),
        ("index/index.py", "from ..cli import main"),
        ("__init__.py", "from simindex.cli import main"),
        ("__init__.py", "_HOMES = {'cli.app': ('Program',)}\n" + LATE_HERE),
        ("__init__.py", "_HOMES = {'helpers.deep': ('thing',)}\n" + LATE_HERE),
        ("__init__.py", "_HOMES = made()\n" + LATE_HERE),
        ("__init__.py", LATE_HERE),
        ("__init__.py", "import_module(f'simindex.{name}')"),
        ("index/index.py", "_HOMES = {'errors': ('InvalidBatch',)}\n" + LATE_HERE),
        # simhash and inputs know no storage
        ("bits/vosh.py", "from simindex.storage.tables import table"),
        ("bits/vosh.py", "from ..storage.tables.table import Table"),
        ("inputs/json_lines.py", "from simindex.storage.tables.table import Table"),
        # what serves all serves itself only
        ("records/batch.py", "from simindex._kernels import _native"),
        ("errors.py", "from simindex import Index"),
        ("options.py", "from simindex.bits import vosh"),
        ("_kernels/__init__.py", "from simindex.errors import InvalidBatch"),
        # modules that nobody placed
        ("utils.py", ""),
        ("helpers/deep/thing.py", "import os"),
        ("index/index.py", "from simindex.helpers import thing"),
        ("cli/app.py", "from ..helpers.deep import thing"),
        ("cli/app.py", "from simindex.cli import program"),
        ("cli/app.py", "import simindex.cli"),
        ("cli/dedup/marks.py", "from simindex.cli import main"),
        # doors
        ("storage/tables/segment.py", "import lmdb"),
        ("index/index.py", "from lmdb import Environment"),
        ("inputs/json_lines.py", "import click"),
        ("distributed/ray.py", "from click import echo"),
        ("clix.py", "import click"),
        # descriptors
        ("storage/tables/segment.py", "import os\nos.open(p, os.O_RDONLY)"),
        ("cli/app.py", "import os\nlist(map(os.close, held))"),
        ("inputs/json_lines.py", "from os import pipe"),
        # writing
        ("storage/tables/segment.py", "import os\nos.fsync(3)"),
        ("storage/tables/segment.py", "from os import replace"),
        ("storage/tables/segment.py", "import os\nos.open(p, os.O_RDWR)"),
        ("storage/tables/segment.py", "open(p, 'wb')"),
        ("storage/tables/segment.py", "open(p, mode='r+b')"),
        ("storage/tables/segment.py", "open(p, mode)"),
        ("storage/tables/segment.py", "path.open('ab')"),
        ("storage/tables/segment.py", "(path / name).open(mode='x')"),
        ("storage/tables/segment.py", "(path / name).unlink(missing_ok=True)"),
        ("storage/catalog/environment.py", "import os\nos.fsync(3)"),
        ("storage/catalog/environment.py", "import os\nos.unlink(p)"),
        ("storage/catalog/environment.py", "open(p, 'wb')"),
        ("storage/catalog/environment.py", "path.unlink()"),
        ("storage/files/durable.py", "import os\nos.fsync(3)"),
        ("storage/files/durable.py", "path.rename(to)"),
        ("storage/files/durable.py", "import os\nos.posix_fallocate(3, 0, 9)"),
        ("storage/files/durable.py", "_native.write_back(3, 0, 9, True)"),
        ("writing/creation.py", "import shutil\nshutil.rmtree(path)"),
        ("writing/creation.py", "path.mkdir()"),
        ("storage/tables/compaction.py", "import os\nos.rename(a, b)"),
        ("storage/tables/compaction.py", "path.write_bytes(b'')"),
        ("index/index.py", "rows.tofile(path)"),
        ("index/index.py", "np.memmap(path, np.uint64, 'r+')"),
        ("index/index.py", "np.memmap(path, np.uint64)"),
        # never
        ("index/index.py", "import pickle"),
        ("cli/app.py", "from yaml import safe_load"),
        ("inputs/csv_table.py", "eval('1')"),
        ("cli/app.py", "exec(text)"),
        ("inputs/csv_table.py", "np.load(path, allow_pickle=True)"),
    ],
)
def test_a_planted_breach_is_found(path: str, source: str) -> None:
    assert breaches(path, source) != []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "storage/tables/table.py",
            "from simindex._kernels import _native\nfrom simindex import errors",
        ),
        ("storage/tables/table.py", "from . import envelope\nfrom .format import write"),
        ("storage/catalog/catalog.py", "import lmdb"),
        ("storage/files/disk.py", "import os\nos.fsync(3)\nopen(p, 'wb')"),
        (
            "storage/tables/segment.py",
            "open(p)\nopen(p, 'rb')\np.open()\nnp.memmap(p, np.uint8, 'r')",
        ),
        ("storage/catalog/lmdb_files.py", "import os\ndisk.system.create(p, os.O_RDWR)"),
        ("storage/files/durable.py", "disk.system.unlink(p)\ndisk.system.rename(p, to)"),
        ("storage/tables/segment.py", "Descriptor(p, os.O_RDONLY)\n'a'.replace('b', 'c')"),
        ("storage/files/descriptor.py", "import os\nos.open(p, os.O_RDONLY)"),
        ("methods/psm.py", "from simindex.bits.vosh import flips"),
        (
            "index/index.py",
            "from simindex.storage.tables import segment\nimport simindex.planning.planner",
        ),
        ("__init__.py", "from simindex.index.index import Index\nfrom simindex.errors import *"),
        ("__init__.py", "_HOMES = {'index.index': ('Index',)}\n" + LATE_HERE),
        ("cli/app.py", "import click\nfrom simindex import Index, find_all\nopen('out', 'w')"),
        (
            "inputs/json_lines.py",
            "import re\nre.compile('x')\nfrom simindex.records.batch import Batch",
        ),
        ("options.py", "from simindex.errors import InvalidOption"),
        ("_kernels/__init__.py", "from simindex._kernels import _native"),
        ("index/index.py", "model.eval()"),
    ],
)
def test_what_is_allowed_is_not_a_breach(path: str, source: str) -> None:
    assert breaches(path, source) == []


def test_a_planted_circle_is_found() -> None:
    sources = {
        "bits/vosh.py": "from simindex.bits import hamming",
        "bits/hamming.py": "import simindex.bits.design",
        "bits/design.py": "def late():\n    from .vosh import flips",
        "bits/volatility.py": "from simindex.bits.vosh import flips",
    }
    assert [set(circle.split(" <- ")) for circle in circles(sources)] == [
        {"simindex.bits.vosh", "simindex.bits.hamming", "simindex.bits.design"}
    ]


def test_a_module_too_many_at_the_top_would_be_found() -> None:
    """It is in no layer, unless it is one of the words."""
    assert breaches("newcomer.py", "") != []


def rank(module: str) -> int:
    """Of the folder of a module."""
    folder, _, name = module.rpartition("/")
    return RANK["words"] if name in WORDS and not folder else RANK[folder]


def test_no_walk_climbs_to_a_higher_folder(tmp_path: Path) -> None:
    def place(code: CodeType) -> tuple[str, str]:
        return walks.module_of(code), code.co_qualname

    for name, walk in walks.walks(tmp_path / "walked.sim").items():
        climbs = {
            (caller, called) for caller, called in
            ((place(one), place(other)) for one, other in walk.calls)
            if rank(called[0]) > rank(caller[0]) and caller not in GIVEN
        }
        assert not climbs, name
        assert walk.calls and rank(walk.modules()[-1].as_posix()) <= RANK["index"]
