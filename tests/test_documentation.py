"""Every example in README.md and docs/ runs, and prints what the page says it prints.

    ```python             the blocks of one file share their names
    ```console            lines that begin with `$ ` are run by bash, in order; every line below a
                          command must be a line of its output; `...` within a line stands for any
                          text, and a line of `...` for any lines; `# exit 3` at the end of a
                          command says how it ends, 0 otherwise
    ```jsonl file:NAME    saved as NAME in the directory, whatever language
    ```python no-run      not run: needs a network, a build or another machine
    ```console no-run
    ```console needs:MODULE  the test of the page ends here, skipped, if MODULE is not installed

All blocks of one file run in order in one temporary directory, as a reader runs them.
A command that ends in a backslash goes on in the next line, as does one with a here-document.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import inspect
import io
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import simindex
from simindex.bits.design import BlockDesign
from simindex.cli import program
from simindex.errors import MissingExtra
from simindex.inputs import formats as inputs
from simindex.outputs import formats as outputs
from simindex.planning.registry import Method
from simindex.storage.tables.slice_lists import SliceDesign

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINKING = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

_FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")
_EXIT = re.compile(r"\s+# exit (\d+)\s*$")
_HERE = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: what it is tagged with, its text and its first line's number."""

    info: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A command of a console block, how it ends and what it is said to print."""

    text: str
    exit_code: int
    shown: tuple[str, ...]


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    fence, info, start, indent = "", "", 0, 0
    held: list[str] = []
    for number, line in enumerate(page.splitlines(), start=1):
        found = _FENCE.match(line)
        if not fence and found:
            fence, info = found["mark"], found["info"].strip()
            start, indent, held = number + 1, len(found["indent"]), []
        elif fence and found and found["mark"].startswith(fence) and not found["info"].strip():
            yield Block(info, "\n".join(held) + "\n", start)
            fence = ""
        elif fence:
            held.append(line[indent:] if not line[:indent].strip() else line)
    assert not fence, f"the block that begins at line {start} has no end"


def commands(text: str) -> Iterator[Command]:
    """The commands of a console block."""
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            assert not line.strip(), f"output before any command: {line!r}"
            continue
        command = line[2:]
        while command.endswith("\\") and lines:
            command += "\n" + lines.pop(0).removeprefix("> ")
        here = _HERE.search(command)
        while here and lines:
            body = lines.pop(0).removeprefix("> ")
            command += "\n" + body
            if body.strip() == here[1]:
                break
        ends = _EXIT.search(command)
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0).rstrip())
        yield Command(
            _EXIT.sub("", command),
            int(ends[1]) if ends else 0,
            tuple(line for line in shown if line.strip() not in ("", "...")),
        )


def run_console(block: Block, where: Path) -> None:
    """Runs the commands of a block; fails at the first that does not do what is said."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}
    environment["PYTHONUNBUFFERED"] = "1"  # as on a terminal, also before a kill
    environment.pop("PYTHONSAFEPATH", None)  # a script of a page imports the one next to it
    for command in commands(block.text):
        finished = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{command.text}\nexit $?"],
            cwd=where, env=environment, stdin=subprocess.DEVNULL, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )
        printed = [line.rstrip() for line in finished.stdout.splitlines()]
        report = f"$ {command.text}\n{finished.stdout}"
        assert finished.returncode == command.exit_code, f"exit {finished.returncode}\n{report}"
        for line in command.shown:
            like = re.compile(".*".join(map(re.escape, line.split("..."))))
            assert any(map(like.fullmatch, printed)), f"not printed: {line!r}\n{report}"


def run_python(block: Block, name: str, names: dict[str, object]) -> None:
    """Runs a block in the page's name space; a last expression's value need not be used."""
    # Padding puts the block at its own line of the page in a traceback.
    tree = ast.parse("\n" * (block.line - 1) + block.text, filename=name)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tree, name, "exec"), names)  # noqa: S102


def require(words: list[str]) -> None:
    """Skips the test if a module that a block needs is not installed."""
    for word in words:
        if word.startswith("needs:"):
            pytest.importorskip(word.removeprefix("needs:"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        words = block.info.split()
        if not words or "no-run" in words[1:]:
            continue
        require(words[1:])
        if len(words) == 2 and words[1].startswith("file:"):
            saved = tmp_path / words[1].removeprefix("file:")
            saved.parent.mkdir(parents=True, exist_ok=True)
            saved.write_text(block.text, encoding="utf-8")
        elif words[0] == "console":
            run_console(block, tmp_path)
        elif words[0] == "python":
            run_python(block, f"{page.relative_to(ROOT)}", names)


COMING = ROOT / "docs" / "how-to" / "coming-from.md"

OTHERS = {"simhash-py": "find_all", "simhash of PyPI": "SimhashIndex"}
"""Sections, and what the package of each has: two packages have one name."""


def alone() -> list[tuple[str, Block]]:
    """The blocks of Python of coming-from.md, each with its section."""
    found = []
    page = COMING.read_text(encoding="utf-8")
    starts = {number: line for number, line in enumerate(page.splitlines()) if line[:3] == "## "}
    for block in blocks(page):
        title = [line for number, line in starts.items() if number < block.line][-1][3:]
        if block.info.startswith("python"):
            found.append((title, block))
    return found


@pytest.mark.parametrize(
    ("title", "block"), alone(), ids=[f"{title} {block.line}" for title, block in alone()]
)
def test_each_block_of_a_page_runs_alone(
    title: str, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """coming-from.md, also what it shows as *before*, where that package is installed."""
    monkeypatch.chdir(tmp_path)
    words = block.info.split()
    require(words)
    others = re.findall(r"^(?:import|from) (\w+)", block.text, re.M) if "no-run" in words else []
    for other in others:
        module = pytest.importorskip(other)
        for beginning, name in OTHERS.items():
            if title.startswith(beginning) and other == "simhash" and not hasattr(module, name):
                pytest.skip("another package of this name is installed")
    run_python(block, COMING.name, {"__name__": "__main__"})


def test_the_python_of_the_readme_runs_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the indexes that the first run has made."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "README.md"
    for _ in range(2):
        names: dict[str, object] = {"__name__": "__main__"}
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.info == "python":
                run_python(block, page.name, names)


TYPED = """
recipe = simindex.Recipe(h=None)
radius: int = recipe.h  # None chose it, and it is a number
wider: int = dataclasses.replace(recipe, bits=128, h=None).h
"""


@pytest.mark.slow
def test_the_python_of_the_readme_is_typed(tmp_path: Path) -> None:
    """A user's program passes mypy --strict, and need not narrow what is never None."""
    pytest.importorskip("mypy")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    for number, block in enumerate(b.text for b in blocks(page) if b.info == "python"):
        (tmp_path / f"readme_{number}.py").write_text(block, encoding="utf-8")
    (tmp_path / "radius.py").write_text(f"import dataclasses\n\nimport simindex\n{TYPED}")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "--cache-dir",
         tmp_path / "cache", *tmp_path.glob("*.py")],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_says_how_to_install_what_its_python_imports(page: Path) -> None:
    """In a command of pip, by its name or by an extra that has it."""
    text = page.read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    installed = " ".join(re.findall(r"pip install ([^`\n]+)", text))
    named = {name for found in re.findall(r"\[([\w,]+)\]", installed) for name in found.split(",")}
    given = [*project["dependencies"], *(one for name in named for one in extras.get(name, ()))]
    known = {re.split(r"[^\w-]", one)[0] for one in [*given, *installed.split(), "simindex"]}
    known.update(re.findall(r"^``` *\w+ file:(\w+)\.py$", text, re.M))
    for block in blocks(text):
        words = block.info.split()
        if words[:1] == ["python"] and "no-run" not in words:
            imported = set(re.findall(r"^ *(?:import|from) (\w+)", block.text, re.M))
            assert imported <= known | sys.stdlib_module_names, f"line {block.line}"


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_fences(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, heading = target.partition("#")
            found = page.parent / path if path else page
            assert found.exists(), target
            assert not heading or heading in anchors(found), target


def without_fences(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    return re.sub(r"^ *(```|~~~).*?^ *\1", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`: the headings of a page, spelled as GitHub spells them."""
    headings = re.findall(r"^#+ +(.*?) *$", without_fences(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_index_of_the_pages_lists_every_page() -> None:
    """docs/README.md; pages of decisions and plots stand in their folders."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\]\(([\w-]+/[\w-]+\.md)\)", index))
    parts = ("tutorial", "how-to", "reference", "explanation")
    pages = [page for part in parts for page in (ROOT / "docs" / part).glob("*.md")]
    assert listed == {f"{page.parent.name}/{page.name}" for page in pages}


def test_the_api_page_has_the_docstrings_of_today() -> None:
    """`python tools/reference.py --write` makes it again."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    stale = "run `python tools/reference.py --write`"
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), stale


ROWS = {
    "simindex/planning/registry.py": Method, "simindex/inputs/formats.py": inputs.Format,
    "simindex/outputs/formats.py": outputs.Format,
}
"""Registries, and what their rows are."""


def test_the_rows_in_contributing_can_be_added() -> None:
    """Of each registry that a section names, in the first diff after its name."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for place, kind in ROWS.items():
        added = re.search(r"^ *\+ +(\w*(?:Method|Format)\(.*\)),$", page[page.index(place):], re.M)
        assert added is not None, place
        row = ast.parse(added[1], mode="eval").body
        assert isinstance(row, ast.Call) and ast.unparse(row.func) == kind.__name__
        given = [keyword.arg or "" for keyword in row.keywords]
        bound = inspect.signature(kind).bind(*row.args, **dict.fromkeys(given))
        assert bound.arguments.keys() >= {"name"}


def test_the_command_in_contributing_is_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (command,) = (block.text for block in blocks(page) if "commands/width.py" in block.text)
    monkeypatch.setattr(program, "commands", dict(program.every_command()))
    exec(compile(command, "width.py", "exec"), {})  # noqa: S102
    assert program.commands["width"].params


SHARED_OPTIONS = {
    "--help", "--json", "--quiet", "--distance", "--threads", "--output", "--out", "--wait",
}
"""Options that cli.md describes once, for all commands."""


@pytest.mark.parametrize("name", sorted(program.every_command()))
def test_the_page_of_commands_has_every_option(name: str) -> None:
    """Each in the section of its command, or in one that shares it."""
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    sections = {part.split("\n")[0]: part for part in page.split("\n## ")}
    assert name in sections, f"cli.md has no section '## {name}'"
    described = sections[name] + sections["Inputs"] + sections["build"] + sections["query"]
    described += sections["dedup"]
    for option in program.every_command()[name].params:
        names = {one for one in (*option.opts, *option.secondary_opts) if one.startswith("--")}
        if names and not names & SHARED_OPTIONS and not getattr(option, "hidden", False):
            assert any(f"{one}" in described for one in names), names


# The runner itself -------------------------------------------------------------------------------


def one(text: str) -> Block:
    (block,) = blocks(text)
    return block


def test_blocks_are_told_apart() -> None:
    page = "a\n```python no-run\nx = 1\n```\n\n  ```console\n  $ true\n  ```\n````md\n```\n````\n"
    assert [(b.info, b.text, b.line) for b in blocks(page)] == [
        ("python no-run", "x = 1\n", 3), ("console", "$ true\n", 7), ("md", "```\n", 10),
    ]


def test_a_console_block_that_keeps_its_word_passes(tmp_path: Path) -> None:
    run_console(
        one(
            "```console\n$ cat > a <<'END'\n> one\n> two\n> END\n$ cat a \\\n>   a\none\n...\n"
            "o...e\n"
            "\n$ sh -c 'exit 3'  # exit 3\n```\n"
        ),
        tmp_path,
    )


@pytest.mark.parametrize(
    "lines", ["$ false", "$ echo a\nb", "$ echo a.c\na...b", "$ true  # exit 3", "$ false | cat"]
)
def test_a_console_block_that_breaks_its_word_fails(lines: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_console(one(f"```console\n{lines}\n```\n"), tmp_path)


def test_python_blocks_share_their_names_and_fail_on_an_error() -> None:
    names: dict[str, object] = {}
    first, second = blocks("```python\nx = 1\n```\n```python\nassert x == 1\nassert x == 2\n```\n")
    run_python(first, "page", names)
    with pytest.raises(AssertionError):
        run_python(second, "page", names)


def test_every_equation_is_mapped() -> None:
    """The table of methods.md: (1) to (26), none left out."""
    table = mapping("Equation to function")
    numbered = [line.split(" | ")[0] for line in table.splitlines()]
    equations = {int(number) for cell in numbered for number in re.findall(r"\((\d+)\)", cell)}
    assert equations == set(range(1, 27))


def mapping(title: str) -> str:
    """The lines of the table below a title of methods.md."""
    page = (ROOT / "docs" / "explanation" / "methods.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return "\n".join(line for line in section.splitlines() if line.startswith("| "))


@pytest.mark.parametrize(
    ("title", "least"), [("Equation to function", 31), ("Slice lists: section to function", 6)]
)
def test_what_is_mapped_to_exists(title: str, least: int) -> None:
    """What the tables of methods.md name can be imported."""
    table = mapping(title)
    places: dict[str, list[object]] = {
        "Recipe": [simindex.Recipe], "BlockDesign": [BlockDesign], "SliceDesign": [SliceDesign],
    }
    for module in pkgutil.walk_packages(simindex.__path__, "simindex.", lambda _: None):
        if not module.name.startswith(("simindex._kernels", "simindex.__main__")):
            try:
                loaded = importlib.import_module(module.name)
            except MissingExtra:  # an engine for shards, which no equation is mapped to
                continue
            for name in (module.name.split(".")[-1], ".".join(module.name.split(".")[-2:])):
                places.setdefault(name, []).append(loaded)
    named = {name for name in re.findall(r"`([\w.]+)`", table) if "." in name}
    assert len(named) >= least
    for name in sorted(named):
        place, _, what = name.rpartition(".")
        outer, _, inner = place.rpartition(".")
        holders = places.get(place) or [getattr(one, inner) for one in places[outer]]
        assert any(_has(holder, what) for holder in holders), name


def _has(holder: object, name: str) -> bool:
    return hasattr(holder, name) or name in getattr(holder, "__annotations__", {})
