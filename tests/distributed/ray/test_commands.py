"""`simindex ray COMMAND` prints what the local command prints of one index with all documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from simindex.cli import program
from simindex.distributed import read_map

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Documents, some of which are near-duplicates, in an index and in two shards."""
    monkeypatch.chdir(tmp_path)
    with Path("docs.jsonl").open("w") as file:
        for number in range(40):
            places = range(30 - number // 30)
            words = (f"{WORDS[number % 13 * place % len(WORDS)]}{place % 3}" for place in places)
            text = " ".join(words)
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
    Path("secret").write_text("5a" * 16)
    printed("build", "local.sim", "docs.jsonl", "--key-secret", "secret")
    printed("ray", "build", "s", "docs.jsonl", "--shards", "2", "--key-secret", "secret")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, list(arguments), prog_name="simindex")


def printed(*arguments: str) -> list[str]:
    """The lines of results of a command that ends well."""
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("ours", "local"),
    [
        ("ray query s docs.jsonl", "query local.sim docs.jsonl"),
        ("ray query s docs.jsonl --limit 1 -d 3", "query local.sim docs.jsonl --limit 1 -d 3"),
        ("ray query s docs.jsonl --json", "query local.sim docs.jsonl --json"),
        ("ray top s docs.jsonl -k 3", "query local.sim docs.jsonl --top 3 --method scan"),
        ("ray pairs s", "pairs local.sim"),
        ("ray pairs s --output csv", "pairs local.sim --output csv"),
        ("ray clusters s", "clusters local.sim"),
        ("ray clusters s --no-singletons --json", "clusters local.sim --no-singletons --json"),
    ],
)
def test_commands_print_what_the_local_ones_do(folder: Path, ours: str, local: str) -> None:
    found, expected = printed(*ours.split()), printed(*local.split())
    if "pairs" in ours:  # parts come in any order
        found, expected = sorted(found), sorted(expected)
    assert found == expected
    assert len(found) > 20


def test_what_is_kept_has_no_near_duplicates_left(folder: Path) -> None:
    lines = [line.split("\t") for line in printed("ray", "dedup", "s", "-d", "3")]
    dropped = {line[0] for line in lines}
    assert dropped and not dropped & {line[1] for line in lines}
    near = [line.split("\t")[:2] for line in printed("pairs", "local.sim", "-d", "3")]
    assert all(set(pair) & dropped for pair in near)
    told = [json.loads(line) for line in printed("ray", "dedup", "s", "-d", "3", "--json")]
    assert {one["key"] for one in told} == dropped
    assert set(told[0]) == {"id", "kept", "key", "kept_key", "distance"}


def test_fingerprints_are_built_and_dropped_by_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.hex").write_text("".join(f"{row // 2:016x}\n" for row in range(20)))
    told = printed("ray", "build", "s", "rows.hex", "--shards", "3", "--by", "prefix", "--json")
    assert json.loads(told[0])["rows"] == 20
    assert len(read_map("s")) == 3
    lines = printed("ray", "dedup", "s", "-d", "0")
    assert lines[0].split("\t") == ["1", "0", "0"] and len(lines) == 10
    assert printed("ray", "query", "s", "--fingerprint", f"{3:016x}", "-d", "0") == [
        f"{3:016x}\t6\t0", f"{3:016x}\t7\t0",
    ]


def test_errors_end_commands_in_one_line(folder: Path) -> None:
    for arguments, code, message in [
        ("ray query nowhere --text a", 3, "there is no shard map"),
        ("ray build s docs.jsonl --shards 2", 3, "is a collection of shards already"),
        ("ray query s", 2, "nothing to look up"),
        ("ray pairs s --replicas 9", 3, "18 actors take 4.5 processors"),
        ("ray build t rows.none --shards 2", 4, "rows.none"),
        ("ray build t docs.jsonl", 2, "--shards"),
    ]:
        done = run(*arguments.split())
        assert done.exit_code == code, done.output
        assert message in done.stderr
    assert not Path("t").exists()


def test_inputs_without_documents_make_nothing(folder: Path) -> None:
    Path("none.jsonl").write_text("")
    done = run("ray", "build", "t", "none.jsonl", "--shards", "2")
    assert done.exit_code == 1 and "was not created" in done.stderr
    assert not Path("t").exists()
    found: Any = run("ray", "query", "s", "none.jsonl", "-o", "found.csv")
    assert found.exit_code == 1 and not Path("found.csv").exists()
