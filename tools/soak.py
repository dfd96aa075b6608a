"""A soak: one writer, one compactor and some readers for minutes, killed and stopped at random.

    python tools/soak.py [--minutes 15] [--readers 4] [--seed S] [--folder WHERE]

Every answer of a reader is compared with what the snapshot it sees must answer. Prints a table; the
exit code is 1 if fewer answers or kills than the goals were reached, or anything was wrong. The
folder is removed after a trial that passed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from reliability import report
from reliability.soaking import Plan, Soak

MINUTES = 15.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the trial and prints its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--answers", type=int, help="goal; a million in 15 minutes")
    parser.add_argument("--kills", type=int, help="goal; 200 in 15 minutes")
    parser.add_argument("--documents", type=int, default=Plan.documents, help="of an operation")
    parser.add_argument("--window", type=int, default=Plan.window, help="operations one lives")
    parser.add_argument("--rate", type=float, default=Plan.rate, help="operations a second")
    parser.add_argument("--folder", type=Path, help="for the index; default: a temporary one")
    asked = parser.parse_args(arguments)
    share = asked.minutes / MINUTES
    plan = Plan(
        60 * asked.minutes, asked.seed, asked.readers,
        int(1_000_000 * share) if asked.answers is None else asked.answers,
        int(200 * share) if asked.kills is None else asked.kills,
        asked.documents, asked.window, asked.rate,
    )
    folder = Path(tempfile.mkdtemp(prefix="simindex-soak-", dir=asked.folder)).absolute()
    print(f"soak: {plan}, in {folder}", file=sys.stderr, flush=True)
    soak = Soak(plan, folder)
    outcomes = soak.run()
    print(report.table(outcomes))
    print(f"\n{soak.summary()}\n\n{soak.plateau.table()}", flush=True)
    passed = all(outcome.passed for outcome in outcomes)
    if passed:
        shutil.rmtree(folder)
    else:
        print(f"see errors.txt and wrong.txt in {folder}", file=sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
