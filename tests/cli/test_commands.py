"""The list of commands: a new one is a module and its name in `simindex.cli`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import simindex
from simindex.cli import commands, program
from simindex.cli.console import emit
from simindex.cli.shared_options import NamedPath, index_argument, output_options

Run = Callable[..., Any]


def test_every_module_of_the_folder_is_listed_and_gives_the_command_of_its_name() -> None:
    folder = Path(commands.__path__[0])
    modules = {path.stem for path in folder.glob("[a-z]*.py")}
    modules |= {path.parent.name for path in folder.glob("[a-z]*/__init__.py")}
    assert modules == set(program.every_command())
    for name, command in program.every_command().items():
        assert command is getattr(getattr(commands, name), name)


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new command, taken back after the test."""
    monkeypatch.setattr(program, "commands", dict(program.every_command()))

    @program.command()
    @index_argument
    @output_options
    def width(index_path: str, as_json: bool, quiet: bool) -> None:
        """Print how wide the fingerprints of INDEX are."""
        with simindex.open(index_path, "r") as index:
            bits = index.options.bits
        if as_json:
            emit({"bits": bits})
        else:
            click.echo(bits)


@pytest.mark.usefixtures("width")
def test_a_new_command_is_listed_and_fails_as_all_do(run: Run, objects: Callable[..., Any]) -> None:
    assert "Print how wide the fingerprints of INDEX are." in run("--help").stdout
    assert "--json" in run("width", "--help").stdout
    simindex.open("i.sim", "n", options=simindex.IndexOptions(bits=128)).close()
    assert run("width", "i.sim").stdout == "128\n"
    assert objects(run("width", "i.sim", "--json").stdout) == [{"bits": 128}]
    refused = run("width", "none.sim", code=3)
    assert refused.stderr.startswith("simindex: ") and refused.stderr.count("\n") == 1


def test_a_missing_index_is_named_by_every_command(run: Run) -> None:
    for command in ["stats", "check", "compact", "export"]:
        assert "nowhere" in run(command, "nowhere", code=3).stderr


def test_every_option_that_is_a_path_refuses_what_looks_like_an_option() -> None:
    """`--index -q` is a slip, not an index of the name -q."""
    paths = {"FILE", "INDEX", "OTHER", "DIR"}
    found = {
        (name, option.name): option
        for name, command in program.every_command().items() for option in command.params
        if isinstance(option, click.Option)
        and (isinstance(option.type, click.Path) or option.metavar in paths)
    }
    assert {("dedup", "index_path"), ("build", "key_secret"), ("demo", "keep")} <= set(found)
    for place, option in found.items():
        assert isinstance(option.type, NamedPath), place
    assert NamedPath().convert("./-q", None, None) == "./-q"
    assert NamedPath().convert("-", None, None) == "-"


def options_of(
    command: click.Command, name: str = ""
) -> Iterator[tuple[str, click.Option]]:
    """The options of a command, or of all commands of a group, each with the command's name."""
    if not isinstance(command, click.Group):
        yield from ((name, one) for one in command.params if isinstance(one, click.Option))
        return
    context = click.Context(command)
    for one in command.list_commands(context):
        inner = command.get_command(context, one)
        assert inner is not None
        yield from options_of(inner, f"{name} {one}".strip())


EXTRAS = {
    "--recipe", "--output", "--similarity", "--list", "--certificates", "-o", "--keys-from",
    "--index", "--top", "--report-format", "--price",
}
"""Options without which there is no such value at all."""


def test_help_says_what_counts_without_an_option_and_which_may_be_repeated() -> None:
    for name, option in options_of(program):
        told = option.help or ""
        if option.multiple:
            assert "May be repeated." in told, (name, option.opts)
        elif not (option.is_flag or option.required or option.hidden or option.opts[0] in EXTRAS):
            assert option.show_default or "Default: " in told, (name, option.opts)


@pytest.mark.parametrize("name", [None, "ray"])
def test_the_list_of_commands_has_whole_sentences(name: str | None) -> None:
    """On a terminal of 80 columns, where a longer one would be cut."""
    group = program if name is None else program.every_command()[name]
    told = group.get_help(click.Context(group, info_name="simindex", terminal_width=80))
    listed = told.partition("Commands:")[2].strip().splitlines()
    assert len(listed) > 5
    for line in listed:
        assert line.endswith("."), line
        assert not line.endswith("..."), line


@pytest.mark.parametrize(("typed", "meant"), [
    (["add"], "build --append"), (["search"], "query"), (["remove"], "delete"),
    (["help"], "--help"), (["query", "i.sim", "--h", "3"], "--distance"),
    (["pairs", "i.sim", "--radius", "3"], "--distance"),
])
def test_the_words_of_other_programs_are_known(run: Any, typed: list[str], meant: str) -> None:
    assert f"Did you mean '{meant}'?" in run(*typed, code=2).stderr
