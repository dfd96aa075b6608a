"""One Python target under libFuzzer, guided by its coverage: `python guided.py TARGET OPTIONS`.

A process of its own, since what is imported is instrumented. Every input is executed as it is and,
where that makes another, once more with its checksums repaired. How often is counted in a file of
two numbers, which also an end by a signal leaves: executions, and those that no checksum stopped.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import atheris
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

_found = importlib.util.find_spec("simindex")
if _found is None or type(_found.loader) is not SourceFileLoader:
    sys.exit("an editable install cannot be instrumented: pip install . into this environment")

with atheris.instrument_imports(include=["simindex"]):
    from fuzzing.target import attempt
    from fuzzing.targets import TARGETS


def main() -> None:
    """Writes the seeds into the corpus, the last argument, and fuzzes."""
    name, *options = sys.argv[1:]
    target = TARGETS[name]
    for number, seed in enumerate(target.seeds()):
        Path(options[-1], f"seed-{number}").write_bytes(seed)

    done = np.memmap(os.environ["FUZZ_COUNTS"], np.uint64, "r+", shape=2)

    def one_input(data: bytes) -> None:
        done[:] += np.array(attempt(target, data), np.uint64)

    atheris.Setup([sys.argv[0], *options], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
