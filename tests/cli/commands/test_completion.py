"""`completion`: what a shell is offered, by the machinery that its script runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from simindex.cli import COMMANDS, program
from simindex.cli.query_options import METHODS
from simindex.inputs import formats as inputs
from simindex.outputs import formats as outputs
from simindex.planning import registry

Run = Callable[..., Any]


def offered(line: str) -> list[str]:
    """What may come in place of the last word of a line."""
    *words, begun = line.split(" ")
    complete = ShellComplete(program, {}, "simindex", "_SIMINDEX_COMPLETE")
    return [
        item.value if item.type == "plain" else item.type
        for item in complete.get_completions(words, begun)
    ]


def test_the_shell_names_the_methods_of_the_registry() -> None:
    """It does not import the registry for its help."""
    assert registry.names() == METHODS


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", sorted(COMMANDS)), ("que", ["query"]), ("nothing", []),
        ("build i.sim --weight", ["--weighting"]), ("pairs --out", ["--output", "--out"]),
        ("build i.sim --unit ", ["word", "char"]), ("build i.sim x --unit w", ["word"]),
        ("build i.sim --on-existing ", ["replace", "skip", "error"]),
        ("query i.sim --format ", list(inputs.names())),
        ("export i.sim --output ", list(outputs.FORMATS)),
        ("query i.sim --method ps", ["psm"]), ("explain i.sim --method sc", ["scan"]),
        ("dedup --keep ", ["first", "longest", "newest", "highest:", "none"]),
        ("clusters i.sim --keep ", ["representative", "first", "longest", "newest", "highest:"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("stats ", ["file"]), ("build i.sim ", ["file"]), ("build i.sim a @miss", ["file"]),
        ("query i.sim a -o ", ["file"]), ("merge a.sim b", ["file"]),
    ],
)
def test_what_is_offered(line: str, found: list[str]) -> None:
    assert offered(line) == found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_offered(name: str) -> None:
    for parameter in program.every_command()[name].params:
        if getattr(parameter, "hidden", False):
            continue
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("--"):
                assert option in offered(f"{name} {option}")
    assert "--help" in offered(f"{name} --")


@pytest.mark.parametrize("line", ["build i.sim --bits nonsense --u", "pairs -d -1 --no-such --js"])
def test_a_line_that_is_wrong_so_far_is_completed(line: str) -> None:
    assert offered(line)


def test_the_script_gets_its_answers_from_the_program(
    spawn: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SIMINDEX_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "simindex query i.sim --format pa")
    monkeypatch.setenv("COMP_CWORD", "4")
    with spawn() as process:
        assert process.communicate(timeout=60) == (b"plain,parquet\n", b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_of_the_shell(run: Run, tmp_path: Path, shell: str) -> None:
    script = run("completion", shell).stdout
    assert "_SIMINDEX_COMPLETE" in script and "simindex" in script
    if (there := shutil.which(shell)) is not None:
        (tmp_path / "script").write_text(script)
        subprocess.run([there, "-n", tmp_path / "script"], check=True)


@pytest.mark.slow
def test_bash_completes_a_command(run: Run, tmp_path: Path) -> None:
    """With the script of this shell, as its tab key does."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    (tmp_path / "script").write_text(run("completion", "bash").stdout)
    (tmp_path / "simindex").write_text(f'#!/bin/sh\nexec {sys.executable} -m simindex "$@"\n')
    (tmp_path / "simindex").chmod(0o755)
    typed = (
        ". ./script; COMP_WORDS=(simindex clus); COMP_CWORD=1; "
        '_simindex_completion simindex; echo "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [bash, "--norc", "-c", typed], cwd=tmp_path, env=environment, capture_output=True,
        check=True, text=True,
    )
    assert (done.stdout, done.stderr) == ("clusters\n", "")
