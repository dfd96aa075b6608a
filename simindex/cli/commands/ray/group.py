"""The group of commands, and the options that say on which cluster they run."""

from __future__ import annotations

from typing import Any

import click

from simindex.cli.app import program
from simindex.cli.numbers import Count, Size
from simindex.cli.shared_options import NamedPath, Option, collected, distance, together

cpus_option: Option = click.option(
    "--cpus", type=click.FloatRange(0, 1), metavar="SHARE",
    help="How much of a processor Ray reserves for each actor, or for each task of a build. "
    "Default: 0.25, and 0.5 for a build.",
)

address_option: Option = click.option(
    "--address", default="auto", show_default=True, metavar="ADDRESS",
    help="The cluster of Ray: auto for the one that runs on this machine, local to start one for "
    "this command, or HOST:PORT.",
)

root_argument: Option = click.argument("root", type=NamedPath())


def _connection(address: str, replicas: int, cpus: float | None) -> dict[str, Any]:
    given: dict[str, Any] = {"address": address, "replicas": replicas}
    return given if cpus is None else {**given, "cpus": cpus}


connection_options: Option = together(
    root_argument,
    collected(
        "connection", _connection, address_option,
        click.option(
            "--replicas", type=Count(1), default=1, show_default=True,
            help="Number of actors for each shard. More answer more queries at a time.",
        ),
        cpus_option,
    ),
)
"""ROOT, and the cluster; the command gets what `connect` takes as `connection`."""

distance_option: Option = distance("the radius that the shards store")


@program.group()
def ray() -> None:
    """Build and query shards on a cluster of Ray.

    `simindex ray COMMAND -h` prints the options of a command. ROOT is the folder of a collection of
    shards. All machines of the cluster must have it under this path.
    """


task_limit_option: Option = click.option(
    "--memory-limit", type=Size(),
    help="Memory that the search of a task may take. Mapped files do not count. A search that "
    "needs more ends with an error. 512M is 512 x 1024^2 bytes. Default: that of the command "
    "without ray.",
)
