"""What pyproject.toml says of the package: its extras, its wheels and its source archive."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import simindex
from simindex.cli import program

ROOT = Path(__file__).resolve().parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]

OF_DEVELOPERS = {"browser", "bench", "fuzz", "lint", "plots", "test"}
"""Extras that the package itself never asks for."""

ENGINES = {"ray", "spark"}
"""Of clusters: `make test-distributed` installs them."""

NOT_IN_ALL = {"scrapy", *ENGINES}
"""What brings much of its own: whoever needs it has it."""

_NAMED = re.compile(r"simindex\[([a-z,]+)\]|extra=\"([a-z]+)\"")


def named(folder: str, pattern: str) -> set[str]:
    """The extras that files name, as a package to install or as the field of an error."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob(pattern):
        for names, extra in _NAMED.findall(path.read_text(encoding="utf-8")):
            found.update(filter(None, [*names.split(","), extra]))
    return found


def test_every_extra_that_is_named_can_be_installed() -> None:
    assert named("simindex", "*.py") >= {"zst", "web", "arrow", "remote", "scrapy", "stopwords"}
    for folder, pattern in [("simindex", "*.py"), ("docs", "*.md"), ("tools", "*.py")]:
        assert named(folder, pattern) <= set(EXTRAS), folder


def test_every_extra_of_users_is_on_the_page_that_tells_how_to_install() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(EXTRAS) - OF_DEVELOPERS <= described
    assert described & OF_DEVELOPERS == set()


def test_the_extras_that_were_promised_are_there() -> None:
    """pip only warns of others, and installs nothing for them. `report` needs no package."""
    assert set(EXTRAS) >= {
        "zst", "progress", "arrow", "web", "scrapy", "stem", "stopwords", "report", "ray", "spark",
        "all",
    }
    assert EXTRAS["report"] == []


def test_all_is_every_extra_of_users_but_a_crawler_and_engines() -> None:
    (everything,) = EXTRAS["all"]
    names = set(everything.removeprefix("simindex[").removesuffix("]").split(","))
    assert names == set(EXTRAS) - OF_DEVELOPERS - NOT_IN_ALL - {"all"}


def test_tests_install_every_package_of_an_extra_of_users() -> None:
    """Else a test of it would be skipped everywhere."""
    for name in set(EXTRAS) - OF_DEVELOPERS - ENGINES - {"all"}:
        assert set(EXTRAS[name]) <= set(EXTRAS["test"]), name
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"for extra in {' '.join(sorted(ENGINES))}" in rules


def test_wheels_are_made_for_every_version_that_is_promised() -> None:
    promised = {
        line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"]
        if re.search(r"Python :: 3\.\d+$", line)
    }
    made = {
        f"3.{build[3:-2]}" for build in PROJECT["tool"]["cibuildwheel"]["build"].split()
    }
    assert made == promised
    assert min(promised, key=lambda one: int(one[2:])) == PROJECT["project"]["requires-python"][2:]


def test_wheels_are_tested_by_files_that_are_there() -> None:
    config = PROJECT["tool"]["cibuildwheel"]
    named = re.findall(r"tests\S*", config["test-command"]) + config["test-sources"]
    assert len(named) > 3
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_version_of_the_distribution_is_that_of_the_package() -> None:
    """It is written in `simindex/__init__.py`, where the build reads it."""
    assert simindex.__version__ == metadata.version("simindex")


def test_types_and_licence_are_part_of_the_package() -> None:
    assert (Path(simindex.__file__).parent / "py.typed").exists()
    assert all((ROOT / name).exists() for name in PROJECT["project"]["license-files"])
    assert PROJECT["project"]["scripts"] == {"simindex": "simindex.cli:main"}
    assert callable(program)
