"""`simindex completion`: a script that has a shell complete commands, options and their values."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from simindex.cli.app import program

SHELLS = ("bash", "zsh", "fish")


@program.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script with which a shell completes commands.

    The tab key then completes commands, options, their values and names of files.

    \b
    bash: add to ~/.bashrc                   eval "$(simindex completion bash)"
    zsh:  add to ~/.zshrc, after compinit    eval "$(simindex completion zsh)"
    fish: add to ~/.config/fish/config.fish  simindex completion fish | source
    """
    completes = get_completion_class(shell)
    assert completes is not None, shell
    click.echo(completes(program, {}, "simindex", "_SIMINDEX_COMPLETE").source())
