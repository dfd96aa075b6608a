"""`simindex ray COMMAND` prints what the local command prints of one index with all documents."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import simindex
from simindex.cli import program
from simindex.distributed import Shards, read_map
from simindex.distributed.shard import named_rows

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Documents, some of which are near-duplicates, in an index and in two shards."""
    place = tmp_path_factory.mktemp("commands")
    with chdir(place):
        _make()
    yield place


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of them, in which the test is."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy)
    monkeypatch.chdir(copy)
    return copy


def _make() -> None:
    with Path("docs.jsonl").open("w") as file:
        for number in range(40):
            places = range(30 - number // 30)
            words = (f"{WORDS[number % 13 * place % len(WORDS)]}{place % 3}" for place in places)
            text = " ".join(words)
            file.write(json.dumps({"id": f"d{number}", "text": text}) + "\n")
    Path("strange.jsonl").write_text("".join(
        json.dumps({"id": f"s{number}", "text": f"quite another page of number {number}"}) + "\n"
        for number in range(30)
    ))
    Path("secret").write_text("5a" * 16)
    printed("build", "local.sim", "docs.jsonl", "--key-secret", "secret")
    printed("ray", "build", "s", "docs.jsonl", "--shards", "2", "--key-secret", "secret")
    named = "docs.jsonl", "--sketch-bits", "256", "--key-secret", "secret"
    printed("build", "sketched.sim", *named)
    printed("ray", "build", "sketched", *named, "--shards", "3", "--by", "ones")


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
        ("ray query s docs.jsonl --list matched", "query local.sim docs.jsonl --list matched"),
        (
            "ray query s docs.jsonl strange.jsonl -d 0 --list unmatched --json",
            "query local.sim docs.jsonl strange.jsonl -d 0 --list unmatched --json",
        ),
        ("ray query s --index local.sim", "query local.sim --index local.sim"),
        (
            "ray query s docs.jsonl --method bphs --recall 1 --memory 1G --memory-limit 200M",
            "query local.sim docs.jsonl --method bphs",
        ),
        ("ray top s docs.jsonl -k 3", "query local.sim docs.jsonl --top 3 --method scan"),
        ("ray pairs s", "pairs local.sim"),
        ("ray pairs s --output csv", "pairs local.sim --output csv"),
        ("ray pairs s --memory-limit 100M", "pairs local.sim --memory-limit 100M"),
        ("ray clusters s", "clusters local.sim"),
        ("ray clusters s --no-singletons --json", "clusters local.sim --no-singletons --json"),
        (
            "ray clusters s --keep representative --json",
            "clusters local.sim --keep representative --json",
        ),
        (
            "ray clusters s --keep representative --mode components --list drop",
            "clusters local.sim --keep representative --mode components --list drop",
        ),
        (
            "ray query sketched docs.jsonl --similarity 0.9 --json",
            "query sketched.sim docs.jsonl --similarity 0.9 --json",
        ),
        ("ray pairs sketched --similarity 0.9", "pairs sketched.sim --similarity 0.9"),
        (
            "ray clusters sketched --similarity 0.9 --json",
            "clusters sketched.sim --similarity 0.9 --json",
        ),
    ],
)
def test_commands_print_what_the_local_ones_do(folder: Path, ours: str, local: str) -> None:
    found, expected = printed(*ours.split()), printed(*local.split())
    if "pairs" in ours:  # parts come in any order
        found, expected = sorted(found), sorted(expected)
    assert found == expected
    assert len(found) > 20


def test_shards_keep_a_sample_of_weights_as_an_index_does(made: Path) -> None:
    """Of all rows here, as there are few."""
    for root, local in (("s", "local.sim"), ("sketched", "sketched.sim")):
        with simindex.open(made / local) as index:
            expected = index.stats().sample_rows
        held = 0
        for shard in read_map(made / root).shards:
            with simindex.open(shard.path) as index:
                held += index.stats().sample_rows
        assert held == expected == 40


def test_first_prints_one_match_of_each_query(folder: Path) -> None:
    every = printed("ray", "query", "s", "docs.jsonl")
    first = printed("ray", "query", "s", "docs.jsonl", "--first")
    assert set(first) <= set(every)
    assert len(first) == len({line.split("\t")[0] for line in every}) == 40


def test_the_nearest_to_queries_without_a_match_are_told(folder: Path) -> None:
    ours, local = (
        run(*command.split(), "strange.jsonl", "-d", "0")
        for command in ("ray query s", "query local.sim")
    )
    told = [
        [line for line in done.stderr.splitlines() if "nearest" in line] for done in (ours, local)
    ]
    assert told[0][:5] == told[1][:5] and len(told[0]) == len(told[1]) == 6
    assert told[0][5] == told[1][5].replace("--top 1", "`simindex ray top`")


def test_slice_lists_of_shards_find_the_nearest(folder: Path) -> None:
    printed("ray", "build", "lists", "docs.jsonl", "--shards", "2", "--structures", "issl",
            "--key-secret", "secret", "--batch-rows", "100")
    lists = "--method", "issl", "--max-error", "0", "--rerank", "64"
    expected = printed("ray", "top", "s", "docs.jsonl", "-k", "1")
    assert printed("ray", "top", "lists", "docs.jsonl", "-k", "1", *lists) == expected


def test_a_recipe_of_an_index_makes_shards_that_it_can_be_compared_with(folder: Path) -> None:
    printed("build", "other.sim", "docs.jsonl", "--seed", "7", "-d", "5")
    printed("ray", "build", "t", "docs.jsonl", "--shards", "2", "--recipe", "other.sim")
    lines = printed("ray", "query", "t", "--index", "other.sim", "-d", "0")
    assert len({line.split("\t")[0] for line in lines}) == 40
    assert read_map("t").h == 5
    done = run("ray", "query", "s", "--index", "other.sim")
    assert done.exit_code == 2 and "another recipe" in done.stderr
    done = run("ray", "query", "sketched", "--index", "local.sim", "--json")
    assert done.exit_code == 2, done.output
    again = json.loads(done.stderr.splitlines()[-1])["remedy"].split(" again with ")
    assert again[0] == "build local.sim"
    printed("build", "alike.sim", "docs.jsonl", *again[1].split())
    assert len(printed("ray", "query", "sketched", "--index", "alike.sim")) >= 40
    done = run("ray", "build", "u", "docs.jsonl", "--shards", "2", "--recipe", "t", "--seed", "1")
    assert done.exit_code == 2 and "--recipe" in done.stderr


def test_what_is_kept_has_no_near_duplicates_left(folder: Path) -> None:
    lines = [line.split("\t") for line in printed("ray", "dedup", "s", "-d", "3")]
    dropped = {line[0] for line in lines}
    assert dropped and not dropped & {line[1] for line in lines}
    near = [line.split("\t")[:2] for line in printed("pairs", "local.sim", "-d", "3")]
    assert all(set(pair) & dropped for pair in near)
    told = [json.loads(line) for line in printed("ray", "dedup", "s", "-d", "3", "--json")]
    assert {one["key"] for one in told} == dropped
    assert set(told[0]) == {"id", "kept", "key", "kept_key", "distance"}
    similar = "ray", "dedup", "sketched", "--similarity", "0.9"
    told = [json.loads(line) for line in printed(*similar, "--json")]
    assert {"distance", "similarity", "similarity_error"} <= set(told[0])
    assert [line.split("\t")[0] for line in printed(*similar)] == [one["key"] for one in told]
    done = run(*similar, "-d", "3")
    assert done.exit_code == 2 and "leave out --distance" in done.stderr


NEAR = {"s": ("local.sim", "-d", "3"), "sketched": ("sketched.sim", "--similarity", "0.9")}


@pytest.mark.parametrize("root", NEAR)
def test_certificates_of_clusters_are_those_of_one_index(folder: Path, root: str) -> None:
    local, *near = NEAR[root]
    keep = "--keep", "representative", "--certificates"
    printed("ray", "clusters", root, *near, *keep, "ours.jsonl")
    printed("clusters", local, *near, *keep, "theirs.jsonl")
    ours, theirs = (
        sorted(Path(name).read_bytes().splitlines()) for name in ("ours.jsonl", "theirs.jsonl")
    )
    assert ours == theirs and len(ours) > 20
    done = run("ray", "clusters", root, "--certificates", "no.jsonl")
    assert done.exit_code == 2 and "--certificates needs --keep" in done.stderr


@pytest.mark.parametrize("root", NEAR)
def test_certificates_of_dedup_are_those_of_documents_by_their_ids(
    folder: Path, root: str
) -> None:
    """All of what the local command writes but where it read the documents, and so why."""
    local, *near = NEAR[root]
    lines = {json.loads(line)["id"]: line for line in Path("docs.jsonl").read_text().splitlines()}
    with simindex.open(local) as index:
        batches = [*named_rows(index)]
    ids = [one for some, _ in batches for one in some.tolist()]
    keys = [key for _, batch in batches for key in batch.keys or []]
    by_id = [lines[key] for _, key in sorted(zip(ids, keys, strict=True))]
    Path("by_id.jsonl").write_text("\n".join(by_id) + "\n")
    told = printed("ray", "dedup", root, *near, "--certificates", "ours.jsonl", "--json")
    made = ["--sketch-bits", "256"] if root == "sketched" else []
    printed("dedup", "by_id.jsonl", *near, *made, "--certificates", "theirs.jsonl")
    ours = sorted(Path("ours.jsonl").read_bytes().splitlines())
    theirs = [
        line.partition(b', "dropped_at"')[0] + b"}"
        for line in Path("theirs.jsonl").read_bytes().splitlines()
    ]
    assert ours == sorted(theirs) and len(ours) == len(told) > 20
    printed("ray", "dedup", root, *near, "--certificates", "ours.csv")
    assert len(Path("ours.csv").read_text().splitlines()) == len(ours) + 1


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
    printed("ray", "dedup", "s", "-d", "0", "--certificates", "why.jsonl")
    told = [json.loads(line) for line in Path("why.jsonl").read_text().splitlines()]
    assert told[0] == {"dropped": 1, "lost_to": 0, "distance": 0} and len(told) == 10
    assert printed("ray", "query", "s", "--fingerprint", f"{3:016x}", "-d", "0") == [
        f"{3:016x}\t6\t0", f"{3:016x}\t7\t0",
    ]


def test_errors_end_commands_in_one_line(folder: Path) -> None:
    for arguments, code, message in [
        ("ray query nowhere --text a", 3, "there is no shard map"),
        ("ray build s docs.jsonl --shards 2", 3, "is a collection of shards already"),
        ("ray query s", 2, "nothing to look up"),
        ("ray pairs s --replicas 9", 3, "18 actors take 4.5 processors"),
        ("ray pairs s --replicas 9", 3, "give a smaller --cpus, end other commands"),
        ("ray query s --text a --method issl", 2, "build the collection again"),
        ("stats s", 3, "it is a collection of shards"),
        ("build s docs.jsonl", 3, "is not an index"),
        ("ray build t rows.none --shards 2", 4, "rows.none"),
        ("ray build t docs.jsonl", 2, "--shards"),
    ]:
        done = run(*arguments.split())
        assert done.exit_code == code, done.output
        assert message in done.stderr
    assert not Path("t").exists()


def test_appended_documents_are_found_in_all_shards_also_of_a_split_one(folder: Path) -> None:
    """As in the index that has got the same documents; nothing is added twice."""
    told = printed("ray", "append", "sketched", "strange.jsonl", "--json", "--cpus", "0.1")
    told = json.loads(told[0])
    assert (told["added"], told["rows"], told["shards"]) == (30, 70, 3)
    told = json.loads(printed("ray", "split", "sketched", "1", "--json", "--cpus", "0.1")[0])
    assert told["numbers"] == [1, 3] and min(told["rows"]) > 0
    assert len(read_map("sketched")) == 4 and read_map("sketched").rows == 70
    printed("build", "sketched.sim", "strange.jsonl", "--append")
    ask = "docs.jsonl", "strange.jsonl", "-d", "9"
    found = printed("ray", "query", "sketched", *ask, "--cpus", "0.1")
    assert found == printed("query", "sketched.sim", *ask) and len(found) > 70
    done = run("ray", "append", "sketched", "strange.jsonl", "--cpus", "0.1")
    assert done.exit_code == 2 and "already" in done.stderr
    assert read_map("sketched").rows == 70


def test_fingerprints_are_appended_with_their_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Shards.build("s", simindex.Batch([1, 2], ids=[5, 6]), 1)
    Path("more.jsonl").write_text("".join(
        json.dumps({"id": number, "fingerprint": f"{number:016x}"}) + "\n" for number in (7, 8)
    ))
    done = run("ray", "append", "s", "more.jsonl")
    assert done.exit_code == 0 and "added 2 rows" in done.stderr
    matches = Shards("s").query([7, 8], h=0)
    assert matches.id.tolist() == [7, 8]


def test_inputs_without_documents_make_nothing(folder: Path) -> None:
    Path("none.jsonl").write_text("")
    done = run("ray", "build", "t", "none.jsonl", "--shards", "2")
    assert done.exit_code == 1 and "was not created" in done.stderr
    assert not Path("t").exists()
    found: Any = run("ray", "query", "s", "none.jsonl", "-o", "found.csv")
    assert found.exit_code == 1 and not Path("found.csv").exists()
