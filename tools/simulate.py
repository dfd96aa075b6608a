"""Predicts a collection of shards on many machines, and compares predictions with real shards.

    python tools/simulate.py measure --dir DIR    writes tools/simulation/measured.json
    python tools/simulate.py check --dir DIR      1 to 4 real shards, beside what is predicted
    python tools/simulate.py page                 tables and chart of docs/explanation/scaling.md

The last measures nothing: equal constants give equal pages.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.real import Compared

LEAST = {"rows": 1_000_000, "queries": 100_000}
"""Of a comparison. On 20,000 rows the batch was off by -97 %: it takes 40 ms whatever it asks."""


def main(arguments: Sequence[str] | None = None) -> None:
    """See above."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "check"):
        command = commands.add_parser(name)
        command.add_argument("--dir", type=Path, help="of a disk; 1 GB")
    command.add_argument("--rows", type=int, default=8_000_000)
    command.add_argument("--queries", type=int, default=1_000_000)
    commands.add_parser("page")
    options = parser.parse_args(arguments)
    if options.command == "check":
        for name, least in LEAST.items():
            if getattr(options, name) < least:
                parser.error(
                    f"--{name} {getattr(options, name)} is too few: a batch of so little takes "
                    f"what the simulation leaves out: give at least {least}"
                )
    if options.command == "page":
        from simulation import page

        page.write()
        return
    from simulation import real

    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        if options.command == "measure":
            found = real.measure(Path(folder))
            found.write()
            print(found.host, found.rates, f"handed {found.handed_bytes_s:.3g} bytes/s")
            return
        _compare(real.check(Path(folder), real.Constants.read(), options.rows, options.queries))


def _compare(found: Iterable[Compared]) -> None:
    """Prints a table, a line as soon as it is there."""
    for number, one in enumerate(found):
        if not number:
            print(
                "| shards | build, predicted | measured | off | batch, predicted | measured | off |"
            )
            print("|" + "---:|" * 7)
        cells = [str(one.shards)]
        for spread in (one.build_s, one.batch_s):
            least, most = min(spread.runs), max(spread.runs)
            cells.append(f"{spread.predicted:.3g} s")
            cells.append(f"{spread.median:.3g} s ({least:.3g} to {most:.3g})")
            cells.append(f"{spread.off:+.0%}")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
