"""What is typed by those who know another program, and what does it here.

    command that is none     -> another command
    option that is none      -> another option, if the command has it
                             -> or a sentence on where it is done, of the command or of all
    option before a command  -> where options go

Invariant: options that delete or replace what is stored are never suggested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

COMMANDS = {
    "help": "--help", "add": "build --append", "append": "build --append", "create": "build",
    "index": "build", "search": "query", "find": "query", "lookup": "query", "info": "stats",
    "status": "stats", "verify": "check", "remove": "delete", "rm": "delete", "union": "merge",
    "duplicates": "dedup", "deduplicate": "dedup", "diff": "query --index",
}

OPTIONS = {
    "--h": "--distance", "--radius": "--distance", "--threshold": "--distance",
    "--hamming": "--distance", "--max-distance": "--distance", "--keys": "--key",
    "--id": "--id-field", "--id-column": "--id-field", "--text-column": "--text-field",
    "--k": "--top", "-k": "--top",
}

_OUTPUT = "results go to standard output: write > FILE at the end of the command"
_THREADS = "set the environment variable SIMINDEX_THREADS to the number of threads"
_FOLDERS = "folders are read with all their subfolders"

ELSEWHERE = {
    "-o": _OUTPUT, "--out": _OUTPUT, "--output": _OUTPUT, "--output-file": _OUTPUT,
    "--threads": _THREADS, "--jobs": _THREADS, "--workers": _THREADS, "-j": _THREADS,
    "-r": _FOLDERS, "-R": _FOLDERS, "--recursive": _FOLDERS,
    "-v": "only `simindex calibrate`, `diff`, `explain`, `plan`, `stats` and `tune` have --verbose",
    "--verbose": "only `simindex calibrate`, `diff`, `explain`, `plan`, `stats` and `tune` have it",
}

_INDEX_FIRST = "the index is the first argument, as in `simindex build INDEX INPUT`"

ELSEWHERE_OF: dict[str, dict[str, str]] = {
    "build": dict.fromkeys(("-o", "--out", "--output", "--output-file"), _INDEX_FIRST),
    "export": {"--format": "--output names the format of results"},
    "merge": {"--output": "the new index is named with -o, or --out"},
}

NEVER = {"--overwrite", "--prune", "--apply"}


def meant(error: click.NoSuchOption) -> click.NoSuchOption:
    """The same error with what was probably meant."""
    name, ctx = error.option_name, error.ctx
    own: Mapping[str, str] = {} if ctx is None else ELSEWHERE_OF.get(ctx.command.name or "", {})
    told = own.get(name) or ELSEWHERE.get(name)
    if told is not None:
        return click.NoSuchOption(name, f"No such option {name!r}: {told}", ctx=ctx)
    option = OPTIONS.get(name)
    if option is not None and ctx is not None and _have([ctx.command], option):
        told = f"No such option {name!r}. Did you mean {option!r}?"
        return click.NoSuchOption(name, told, ctx=ctx)
    near = [option for option in error.possibilities or () if option not in NEVER]
    return click.NoSuchOption(name, error.message, possibilities=near, ctx=ctx)


def before_a_command(
    error: click.NoSuchOption, commands: Iterable[click.Command]
) -> click.NoSuchOption:
    """The same error where it is an option of commands, with where it goes."""
    name = error.option_name
    if not _have(commands, name):
        return error
    told = (
        f"No such option {name!r} before the command: options follow it, as in "
        f"`simindex COMMAND {name}`"
    )
    return click.NoSuchOption(name, told, ctx=error.ctx)


def _have(commands: Iterable[click.Command], option: str) -> bool:
    return any(option in param.opts for command in commands for param in command.params)
