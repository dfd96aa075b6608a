"""`simindex plan --machines`: options for shards on several machines, and lines about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from simindex.cli.console import duration
from simindex.cli.numbers import Count, Price, Size
from simindex.cli.shared_options import Option, collected
from simindex.values import dataclass

if TYPE_CHECKING:
    from simindex.planning.fleet import Fleet, FleetForecast

COLUMNS = (
    "searched", "recall", "rows", "on disk", "memory", "fits", "batch", "queries/s", "build",
)
"""Rows, bytes and memory are of one machine."""

NO_LIMIT = 64 << 30
"""Memory of a machine, unless --memory says it."""


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """As they were given; None where they were not."""

    machines: int | None
    cores: int | None
    disk: int | None
    network: int | None
    replicas: int | None
    shards: int | None
    batch: int | None
    text: int | None
    price: float | None

    def fleet(self, memory: int | None) -> Fleet | None:
        """The machines, or None if there is one. Raises UsageError for options of machines then."""
        names = ("cores", "disk", "network", "replicas", "shards", "batch", "text", "price")
        given = [name for name in names if getattr(self, name) is not None]
        if self.machines is None:
            if given:
                raise click.UsageError(f"--{given[0]} needs --machines N")
            return None
        if memory == 0:
            raise click.UsageError(
                "--memory 0 leaves the machines no memory: give a size like 64G, or leave it out"
            )
        from simindex.planning.fleet import Fleet

        known: dict[str, Any] = {
            "cores": self.cores, "disk_bytes_s": self.disk, "network_bytes_s": self.network,
            "replicas": self.replicas, "shards": self.shards, "price_h": self.price,
        }
        found = {name: value for name, value in known.items() if value is not None}
        return Fleet(self.machines, memory_bytes=NO_LIMIT if memory is None else memory, **found)


fleet_options: Option = collected(
    "machines", FleetOptions,
    click.option(
        "--machines", type=Count(1),
        help="Predict for shards on this number of machines. Default: one index on one machine.",
    ),
    click.option(
        "--cores", type=Count(1), help="With --machines: processor cores of each. Default: 16."
    ),
    click.option(
        "--disk", type=Size(),
        help="With --machines: bytes a second that the disk of each reads. Default: 1GB.",
    ),
    click.option(
        "--network", type=Size(),
        help="With --machines: bytes a second that each sends, and that each receives. "
        "Default: 1250MB.",
    ),
    click.option(
        "--replicas", type=Count(1),
        help="With --machines: how many of them have each shard. Default: 1.",
    ),
    click.option(
        "--shards", type=Count(1),
        help="With --machines: number of shards. Default: machines / replicas.",
    ),
    click.option(
        "--batch", type=Count(1), help="With --machines: queries in a batch. Default: 1M."
    ),
    click.option(
        "--text", type=Size(),
        help="With --machines: bytes of all texts, such as 8TB, which the machines turn into "
        "fingerprints. Default: the rows are fingerprints already.",
    ),
    click.option(
        "--price", type=Price(),
        help="With --machines: price of one for an hour, in any currency. Then the cost of the "
        "build and of a batch is printed, too.",
    ),
)
"""What a command gets as `machines`."""


def line(one: FleetForecast, way: str, told: Any, sized: Any) -> tuple[str, ...]:
    """The cells of a structure; `told` and `sized` shorten a number, and one of bytes."""
    return (
        way, f"{one.recall:g}", told(one.rows_per_shard * one.shards_per_machine),
        sized(one.disk_bytes), sized(one.memory_bytes), "yes" if one.fits else "no",
        duration(one.batch_s), told(one.queries_s), duration(one.build_s),
    )


def summary(found: Sequence[FleetForecast], fleet: Fleet, told: Any, sized: Any) -> str:
    """What is sent and returned, and the cost, of the structure that is chosen."""
    (one,) = [one for one in found if one.chosen]
    parts = [
        f"{one.shards:,} shards of {told(one.rows_per_shard)} rows, {one.shards_per_machine} a "
        f"machine; a batch of {told(one.batch)} queries sends {sized(one.sent_bytes)} in all and "
        f"gets {sized(one.returned_bytes)}: send {duration(one.send_s)}, sweep "
        f"{duration(one.sweep_s)}, return {duration(one.return_s)}, merge {duration(one.merge_s)}"
    ]
    if fleet.price_h:
        parts.append(f"the build costs {one.build_cost:.3g}, a batch {one.batch_cost:.3g}")
    return "; ".join(parts)
