"""Values that a shell suggests for options which take others, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

Suggest = Callable[[click.Context, click.Parameter, str], list[str]]


def suggested(names: Callable[[], Iterable[str]]) -> Suggest:
    """For `shell_complete` of an option: those of some names that begin as what was typed."""
    return lambda _ctx, _parameter, begun: [name for name in names() if name.startswith(begun)]
