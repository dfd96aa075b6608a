"""The tests that reach kernels, on kernels built with sanitizers: `python tools/sanitize.py`.

    address   AddressSanitizer and UndefinedBehaviorSanitizer, every level of instructions that
              this machine has: tests of kernels and of everything that calls them
    thread    ThreadSanitizer: tests in which threads share kernels, handles, readers and merges

Each has its own environment under build/. It uses the packages of that of the tests.
Compiling takes some minutes, the tests 20 to 40 times as long as without. Needs gcc with its
sanitizers' libraries.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reliability import report

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Kind:
    """A build, and the tests that run on it."""

    sanitizers: str
    libraries: tuple[str, ...]
    tests: tuple[str, ...]
    least: int
    """Tests that must have passed."""
    chosen: str = ""
    """pytest's -k."""


KINDS = {
    "address": Kind(
        "address,undefined", ("libasan.so", "libubsan.so"),
        (
            "tests/kernels", "tests/bits", "tests/simhash", "tests/storage", "tests/methods",
            "tests/pairs", "tests/inputs", "tests/writing/test_ingestion.py",
            "tests/query/test_top_recall.py", "tests/faults/test_first_touch.py",
        ),
        3_000, "not test_memory_stays_within_the_limit",  # the sanitizer keeps what is freed
    ),
    "thread": Kind(
        "thread", ("libtsan.so",),
        (
            "tests/kernels", "tests/bits", "tests/simhash", "tests/storage", "tests/methods",
            "tests/pairs", "tests/writing/test_merges.py", "tests/faults/test_first_touch.py",
        ),
        50, "thread or readers or side or merg",
    ),
}

OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=0:report_signal_unsafe=0:history_size=4",
}
"""Python never frees all it holds; tests ask for arrays that no machine can hold."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Builds, tests, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "kinds", nargs="*", choices=[*KINDS, "all"], default="all", metavar="KIND",
        help=", ".join(KINDS),
    )
    asked = parser.parse_args(arguments)
    names = list(KINDS) if "all" in asked.kinds else asked.kinds
    if shutil.which("gcc") is None:
        print("the sanitizers are those of gcc, which is missing here", file=sys.stderr)
        return 2
    outcomes = [_run(name, KINDS[name], build(name, KINDS[name])) for name in names]
    print(report.table(outcomes))
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def build(name: str, kind: Kind) -> Path:
    """The interpreter of an environment that has the kernels so built."""
    place = ROOT / "build" / f"sanitize-{name}"
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        beside = place / "lib" / version / "site-packages" / "beside.pth"
        beside.write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet",
            "--disable-pip-version-check", "--no-deps", "--force-reinstall",
            "-C", f"build-dir=build/cmake-{name}",
            "-C", f"cmake.define.SIMINDEX_SANITIZE={kind.sanitizers}", ".",
        ],
        check=True, cwd=ROOT,
    )
    return python


def _run(name: str, kind: Kind, python: Path) -> report.Outcome:
    """Reports of sanitizers and failures count as signals."""
    libraries = " ".join(
        subprocess.run(
            ["gcc", f"-print-file-name={library}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for library in kind.libraries
    )
    logs = ROOT / "build" / f"sanitize-{name}-logs"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    options = {key: f"{value}:log_path={logs}/report" for key, value in OPTIONS.items()}
    started = time.monotonic()
    chosen = ["-k", kind.chosen] if kind.chosen else []
    with (logs / "pytest").open("wb") as output:
        subprocess.run(
            # Threads' shadow memory wants addresses where they always are.
            ["setarch", "-R", str(python), "-P", "-m", "pytest", "-p", "no:cacheprovider",
             "-n", "auto", *chosen, *kind.tests],
            cwd=ROOT, env={**os.environ, **options, "LD_PRELOAD": libraries}, check=False,
            stdout=output, stderr=output,
        )
    text = (logs / "pytest").read_text("utf-8", "replace")
    passed, failed, skipped = (
        sum(map(int, re.findall(rf"(\d+) {word}", text[-400:])))
        for word in ("passed", "(?:failed|error)", "skipped")
    )
    if not passed:  # -q counts nothing in words
        dots = "".join(re.findall(r"^([.sFEx]+) +\[ *\d+%\]$", text, re.M))
        passed, failed, skipped = dots.count("."), len(re.findall("[FE]", dots)), dots.count("s")
    reports = list(logs.glob("report*"))
    for path in reports:
        print(path.read_text("utf-8", "replace")[:2000], file=sys.stderr)
    return report.Outcome(
        f"tests under {kind.sanitizers}", kind.least, passed, time.monotonic() - started,
        signals=failed + len(reports), skipped=f"{skipped} tests" if skipped else "",
    )


if __name__ == "__main__":
    sys.exit(main())
