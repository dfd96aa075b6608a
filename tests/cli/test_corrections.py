"""What is answered to an option that is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from simindex.cli import corrections, program

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("pairs i.sim --threshold 3", "No such option '--threshold'. Did you mean '--distance'?"),
        ("query i.sim --radius 3", "Did you mean '--distance'?"),
        ("build i.sim k.jsonl --id id", "No such option '--id'. Did you mean '--id-field'?"),
        ("query i.sim -k 3", "No such option '-k'. Did you mean '--top'?"),
        ("stats i.sim --output x", "No such option '--output': results go to standard output"),
        ("dedup k.jsonl -o out.jsonl", "No such option '-o': results go to standard output: write "
         "> FILE at the end of the command"),
        ("build k.jsonl -o i.sim", "No such option '-o': the index is the first argument"),
        ("build i.sim k.jsonl --threads 2", "set the environment variable SIMINDEX_THREADS"),
        ("build i.sim k.jsonl --verbose", "No such option '--verbose': only `simindex calibrate`"),
        ("build i.sim docs -r", "folders are read with all their subfolders"),
        ("build i.sim k.jsonl --apend", "'--append'"),
    ],
)
def test_well_known_options_are_answered_with_those_of_here(
    run: Run, call: str, told: str
) -> None:
    answer = " ".join(run(*call.split(), code=2).stderr.split())
    assert told in answer
    assert answer.count("Did you mean") <= 1


@pytest.mark.parametrize(
    "call",
    [
        "build i.sim k.jsonl --verbose", "build i.sim k.jsonl --force", "build i.sim d --overwrit",
        "build i.sim d --prun", "repair i.sim --aply",
    ],
)
def test_what_deletes_or_replaces_is_not_suggested(run: Run, call: str) -> None:
    told = run(*call.split(), code=2).stderr
    assert not any(option in told for option in corrections.NEVER)


def test_suggestions_exist() -> None:
    """Those that a row of a table names, and those that a sentence names."""
    options = {
        name: {option for param in command.params for option in param.opts}
        for name, command in program.every_command().items()
    }
    every = set.union(*options.values())
    assert {*corrections.OPTIONS.values(), *corrections.NEVER} <= every
    assert not {*corrections.OPTIONS} & {option for option in every if option != "--id"}
    said = corrections.ELSEWHERE["--verbose"].replace("simindex ", "")
    assert {name for name in options if f"`{name}`" in said} == {
        name for name, own in options.items() if "--verbose" in own
    }
    assert all(meant.split()[0] in {*options, "--help"} for meant in corrections.COMMANDS.values())


def test_an_option_before_the_command_is_told_where_it_goes(run: Run) -> None:
    told = run("-d", 3, "pairs", "i.sim", code=2).stderr
    assert "No such option '-d' before the command: options follow it, as in `simindex " in told
    assert "Did you mean '--version'" in run("--versio", code=2).stderr
    for call in (("--json", "pairs", "i.sim"), ("-x", "--json")):
        told = json.loads(run(*call, code=2).stderr)
        assert (told["exit_code"], told["error"]) == (2, "NoSuchOption")
        assert told["message"].startswith(f"No such option '{call[0]}'")
    assert "options follow it, as in `simindex COMMAND --json`" in (
        json.loads(run("--json", "pairs", "i.sim", code=2).stderr)["message"]
    )
