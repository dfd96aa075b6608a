"""What is imported, and when: `import simindex` and the help of the shell need no arrays.

Each program here runs in a process of its own, for this one has imported everything.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

import simindex
from simindex.cli import COMMANDS, program
from simindex.cli.commands.query import query
from simindex.cli.prepared_documents import LEAST_DOCUMENTS
from simindex.planning import registry

PACKAGE = Path(simindex.__file__).parent

HEAVY = (
    "numpy", "lmdb", "mmh3", "msgpack", "pyarrow", "orjson", "rich", "simindex._kernels",
    "simindex.storage.catalog",
)
"""What takes tens of milliseconds to import, or leads to what does."""

RUN = "import sys; sys.argv[1:] = {}\nfrom simindex.cli import main\nmain()"

NAMES = [name for name in simindex.__all__ if name != "__version__"]


def printed(code: str, *, code_of_exit: int = 0, to: str = "stdout") -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False,
    )
    assert done.returncode == code_of_exit, done.stderr
    return str(getattr(done, to))


def loaded(code: str, **environment: str) -> set[str]:
    """The modules that a program has imported at its end, also one that exits."""
    told = "import atexit, sys\natexit.register(lambda: print(*sys.modules, sep='\\n'))\n"
    done = subprocess.run(
        [sys.executable, "-c", told + code], capture_output=True, text=True, timeout=120,
        check=True, env={**os.environ, **environment},
    )
    return set(done.stdout.split("\n"))


def test_import_loads_nothing_else_of_the_package() -> None:
    found = loaded("import simindex")
    assert not found & set(HEAVY)
    assert {name for name in found if name.startswith("simindex.")} == {"simindex.repair"}


def test_asking_for_an_error_loads_no_arrays() -> None:
    found = loaded("import simindex\nsimindex.IndexLocked")
    assert "simindex.errors" in found and not found & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_no_arrays(arguments: list[str]) -> None:
    found = loaded(RUN.format(arguments))
    assert "click" in found
    assert not found & set(HEAVY)


@pytest.mark.parametrize(
    "typed",
    [
        "simindex qu", "simindex query --me", "simindex build --we", "simindex query i.sim --out j",
        "simindex explain i.sim --method b", "simindex dedup --keep n",
    ],
)
def test_completion_loads_no_arrays(typed: str) -> None:
    words = len(typed.split()) - 1
    found = loaded(
        "from simindex.cli import main\nmain()", _SIMINDEX_COMPLETE="bash_complete",
        COMP_WORDS=typed, COMP_CWORD=str(words),
    )
    assert {
        "plain,query", "plain,--method", "plain,--weighting", "file,j", "plain,bphs",
        "plain,newest",
    } & found
    assert not found & set(HEAVY)


def test_a_command_loads_no_other_command() -> None:
    found = loaded(RUN.format(["stats", "--help"]))
    commands = {name for name in found if name.startswith("simindex.cli.commands.")}
    assert commands == {"simindex.cli.commands.stats"}


WRITER = {"simindex.writing.writer", "simindex.index.changes", "simindex.index.arrivals"}
ENGINE = {"simindex.query.answerer", "simindex.planning.planner", "simindex.methods.psm"}
READERS = {
    "simindex.inputs.json_lines", "simindex.inputs.warc", "simindex.inputs.column_files", "csv",
}
FORMATS = READERS - {"simindex.inputs.json_lines"} | {"simindex.inputs.decompressors"}
READING = {"simindex.inputs.reading", "simindex.inputs.streams"}
PARTS = {"simindex.pairs.pair_search", "simindex.repair.rebuild", "simindex.backup.index_copy",
         "simindex.distributed.collection", "simindex.advising.recommendation",
         "simindex.planning.fleet"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few texts; beside it another of the same, other documents, and a module."""
    path = tmp_path_factory.mktemp("small") / "i.sim"
    recipe = simindex.Recipe()
    options = simindex.IndexOptions(keys=True, recipe=recipe, times=True)
    texts = [f"the quick brown fox {n} jumps over {n * n} dogs" for n in range(9)]
    for one in (path, path.with_name("i.sim.twin")):
        with simindex.open(one, "n", options=options) as index:
            index.append(recipe.batch(texts, keys=[str(n) for n in range(9)]))
    path.with_name("i.sim.jsonl").write_text("".join(
        json.dumps({"id": str(n), "text": " ".join(f"{n}-{word}" for word in range(n, 40))}) + "\n"
        for n in range(LEAST_DOCUMENTS)
    ))
    modules = path.with_name("i.sim.modules")
    modules.mkdir()
    shutil.copy(Path(textwrap.__file__), modules)
    return path


@pytest.mark.parametrize(
    ("arguments", "others", "most"),
    [
        (["query", "{}", "--text", "one two"], WRITER | READERS | PARTS, 200),
        (["query", "{}", "--text", "one two", "--top", "2"], WRITER | READERS | PARTS, 200),
        (["explain", "{}", "--text", "one two"], WRITER | READERS | PARTS, 205),
        (["stats", "{}"], WRITER | READERS | PARTS, 170),
        (["check", "{}"], WRITER | ENGINE | READERS | PARTS, 125),
        (["export", "{}"], WRITER | ENGINE | READERS | PARTS, 140),
        (["backup", "{}", "{}.new"], WRITER | ENGINE | READERS | PARTS - {
            "simindex.backup.index_copy"}, 131),
        (["pairs", "{}"], WRITER | READERS | PARTS - {"simindex.pairs.pair_search"}, 150),
        (["delete", "{}", "--key", "0"], READERS | PARTS, 205),
        (["expire", "{}", "--older-than", "30d"], ENGINE | READERS | PARTS, 140),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_loads_what_it_asks_for(
    small: Path, arguments: list[str], others: set[str], most: int
) -> None:
    """`most` is how many modules of the package it may load: a few more than it does."""
    found = loaded(RUN.format([one.format(small) for one in arguments]))
    assert "simindex.storage.snapshot" in found  # it has opened the index
    assert not found & others
    assert not found & {"hashlib", "numpy.random", "numpy.ma", "multiprocessing", "asyncio"}
    assert len([name for name in found if name.startswith("simindex")]) <= most


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "others", "most"),
    [
        (["build", "{}.built", "{}.jsonl"], ENGINE | FORMATS | PARTS, 185),
        (["dedup", "{}.jsonl"], FORMATS | PARTS, 258),
        (["demo", "--path", "{}.modules"], FORMATS | PARTS - {"simindex.pairs.pair_search"}, 237),
        (["gate", "--against", "{}", "{}.jsonl"], WRITER | FORMATS | PARTS, 203),
        (["merge", "{}", "{}.twin", "-o", "{}.merged"], ENGINE | READING | READERS | PARTS, 150),
        (["plan", "--rows", "1M"], WRITER | READING | READERS | PARTS | {
            "simindex.storage.catalog", "simindex.planning.measurement", "statistics"}, 105),
        (["report", "{}", "-o", "{}.html"], WRITER | READERS | PARTS - {
            "simindex.pairs.pair_search"}, 230),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_of_documents_loads_what_it_works_with(
    small: Path, arguments: list[str], others: set[str], most: int
) -> None:
    """`most` as above; no command asks for the version of the package by its metadata."""
    found = loaded(RUN.format([one.format(small) for one in arguments]))
    assert "numpy" in found
    assert not found & others
    assert not found & {
        "numpy.random", "numpy.ma", "importlib.metadata", "email", "multiprocessing", "asyncio",
    }
    assert len([name for name in found if name.startswith("simindex")]) <= most


@pytest.mark.parametrize(
    ("arguments", "code", "others", "most"),
    [
        (["dedup", "missing.jsonl"], 4, ENGINE | WRITER | {"simindex.storage.catalog"}, 100),
        (["report", "missing.sim", "-o", "r.html"], 3, {
            "hashlib", "html", "simindex.pairs.pair_search", "simindex.reporting.index_page"}, 148),
        (["explain", "missing.sim", "--text", "a"], 3, READING | {"simindex.inputs.formats"}, 130),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_looks_early_at_what_it_is_given(
    arguments: list[str], code: int, others: set[str], most: int, tmp_path: Path
) -> None:
    """What its work needs is loaded once that is there. `most` as above."""
    told = "import atexit, sys\natexit.register(lambda: print(*sys.modules, sep='\\n'))\n"
    given = [str(tmp_path / one) if "." in one else one for one in arguments]
    found = set(printed(told + RUN.format(given), code_of_exit=code).split("\n"))
    assert "click" in found
    assert not found & others
    assert len([name for name in found if name.startswith("simindex")]) <= most


def test_an_index_that_is_opened_has_what_its_calls_need(small: Path) -> None:
    """A process may keep it for weeks, in which its package is updated."""
    code = (
        f"import sys, simindex\nindex = simindex.open({str(small)!r}, MODE)\n"
        "before = set(sys.modules)\n"
        "for text in ('one two', b'the quick brown fox'): index.query(text), index.top(text, k=2)\n"
        "if MODE == 'w': index.seen_or_add('a b c', key='new'), index.discard()\n"
        "print(sorted(n for n in set(sys.modules) - before if n.startswith('simindex')))"
    )
    for mode in ("r", "w"):
        assert printed(code.replace("MODE", repr(mode))) == "[]\n"


def test_opening_for_reading_loads_no_writer_and_no_random_numbers(tmp_path: Path) -> None:
    path = str(tmp_path / "i.sim")
    simindex.open(path, "n").close()
    found = loaded(f"import simindex\nwith simindex.open({path!r}) as index: index.query([1])")
    assert "numpy" in found
    assert not found & WRITER
    assert not found & {"numpy.random", "numpy.ma", "statistics", "secrets", "hashlib"}


# Public names --------------------------------------------------------------------------------


def declared() -> dict[str, str]:
    """Module of each name, as `simindex/__init__.py` tells type checkers."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    return {
        alias.name: str(node.module)
        for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def test_type_checkers_are_told_what_is_imported() -> None:
    assert declared() == {name: f"simindex.{home}" for name, home in simindex._HOME.items()}
    assert sorted(declared()) == sorted(NAMES)


@pytest.mark.slow
def test_each_name_is_found_first_and_in_any_order() -> None:
    for name in ("Index", "repair", "hamming", "IndexOptions", "__version__"):
        assert "simindex" in printed(f"import simindex; print('simindex', simindex.{name})")
    assert printed("from simindex import *; print(Index.__name__, repair.__name__)") == (
        "Index repair\n"
    )


@pytest.mark.slow
def test_a_name_stays_what_it_is_once_all_modules_are_imported() -> None:
    """`repair` is a function, and a folder that other modules import from."""
    names = [
        "simindex." + path.relative_to(PACKAGE).as_posix().removesuffix(".py").replace("/", ".")
        for path in sorted(PACKAGE.rglob("*.py")) if path.stem not in ("__init__", "__main__")
    ]
    code = (
        "import importlib, types, contextlib\nimport simindex\n"
        f"for name in {names}:\n"
        "    with contextlib.suppress(simindex.MissingExtra): importlib.import_module(name)\n"
        "print([n for n in simindex.__all__ if isinstance(getattr(simindex, n), types.ModuleType)])"
    )
    assert printed(code) == "[]\n"
    assert not [name for name in NAMES if isinstance(getattr(simindex, name), ModuleType)]


def test_dir_has_all_names_before_they_are_used() -> None:
    code = "import simindex; print(set(simindex.__all__) <= set(dir(simindex)))"
    assert printed(code) == "True\n"


@pytest.mark.slow
def test_help_of_the_package_shows_all_names() -> None:
    shown = printed("import simindex; help(simindex)")
    assert "class Index(" in shown and "rotation_pairs(" in shown


def test_unknown_name_is_an_attribute_error_with_a_suggestion() -> None:
    with pytest.raises(AttributeError, match="'simindex' has no attribute 'Indx'") as raised:
        simindex.Indx  # type: ignore[attr-defined]  # noqa: B018
    assert raised.value.name == "Indx"
    assert "Did you mean: 'Index'?" in printed(
        "import simindex; simindex.Indx", code_of_exit=1, to="stderr"
    )
    assert "cannot import name 'Indx'" in printed(
        "from simindex import Indx", code_of_exit=1, to="stderr"
    )


@pytest.mark.slow
def test_values_are_pickled_where_nothing_was_used_before() -> None:
    """Also the first name that a process asks for may be asked for by pickle."""
    data = printed(
        "import pickle, simindex\n"
        "print(pickle.dumps((simindex.Match(0, 1, None, 2), simindex.repair)))"
    ).strip()
    assert printed(f"import pickle; print(pickle.loads({data})[0].distance)") == "2\n"


@pytest.mark.slow
def test_threads_that_ask_at_once_get_the_same() -> None:
    code = (
        "import threading, simindex\n"
        "found, gate = [], threading.Barrier(8)\n"
        "def ask():\n    gate.wait()\n    found.append(simindex.Index)\n"
        "threads = [threading.Thread(target=ask) for _ in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]\n"
        "print(len(found), len(set(found)))"
    )
    assert printed(code) == "8 1\n"


@pytest.mark.parametrize("slow", ["simindex.index.index", "simindex.index.handle", "numpy.ma"])
@pytest.mark.slow
def test_a_fork_waits_for_what_another_thread_imports(slow: str) -> None:
    """A child has no such thread, and would wait for it for ever."""
    code = """
import os, signal, sys, threading, time

begun = threading.Event()

class Slow:  # a finder that finds nothing, slowly
    def find_spec(self, name, path=None, target=None):
        if name == "SLOW":
            begun.set()
            time.sleep(0.3)

import simindex
sys.meta_path.insert(0, Slow())

def asked():
    import numpy.ma
    return simindex.Index.__name__

thread = threading.Thread(target=asked)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(asked() != "Index")
thread.join()
print(os.waitpid(child, 0)[1])
"""
    assert printed(code.replace("SLOW", slow)) == "0\n"


def test_handlers_of_the_exit_may_wait_for_threads_in_kernels(tmp_path: Path) -> None:
    """They are called before threads are kept in kernels, which is the last thing at the exit."""
    code = f"""
import atexit, threading, simindex
stop = threading.Event()

def ask():
    with simindex.open({str(tmp_path / "i.sim")!r}, "n") as index:
        index.append(list(range(1000)))
        index.commit()
        while not stop.is_set():
            index.query(list(range(1000)))

def end():
    stop.set()
    thread.join(60)
    print("ended" if not thread.is_alive() else "kept")

atexit.register(end)  # before a kernel is imported
thread = threading.Thread(target=ask, daemon=True)
thread.start()
"""
    assert printed(code) == "ended\n"


def test_isolated_python_finds_all_names() -> None:
    """Without what `site` adds but the paths."""
    code = f"import sys; sys.path[:0] = {[path for path in sys.path if path]}; import simindex"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"{code}; print(simindex.Recipe().bits)"],
        capture_output=True, text=True, check=True,
    )
    assert done.stdout == "64\n"


# The shell -----------------------------------------------------------------------------------


def test_help_of_a_query_names_the_methods_that_there_are() -> None:
    """It is written out, for the methods are modules of arrays."""
    method = next(option for option in query.params if option.name == "method")
    names = ", ".join(registry.names())
    assert getattr(method, "help", "") == f"How to search: {names}, or the name of a structure."


def test_all_commands_are_listed_before_they_are_imported() -> None:
    assert set(COMMANDS) == set(program.every_command())
    told = printed("from simindex.cli import program\nimport click\n"
                   "print(*program.list_commands(click.Context(program)), program.commands)")
    assert told == f"{' '.join(sorted(COMMANDS))} {{}}\n"
