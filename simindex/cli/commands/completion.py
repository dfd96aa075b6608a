"""`simindex completion`: a script that has a shell complete commands, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from simindex.cli.app import program

SHELLS = ("bash", "zsh", "fish")


@program.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and their values in a SHELL.

    bash and zsh take it with  eval "$(simindex completion SHELL)"  in ~/.bashrc or ~/.zshrc, and
    fish with  simindex completion fish | source  in its config.fish.
    """
    completes = get_completion_class(shell)
    assert completes is not None, shell
    click.echo(completes(program, {}, "simindex", "_SIMINDEX_COMPLETE").source())
