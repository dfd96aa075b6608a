"""`dedup --index`: what comes out, what is stored, and what a kill leaves."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import simindex
from simindex.cli.dedup import output_streams
from simindex.cli.dedup import run as dedup_run
from simindex.cli.dedup.unbuffered_file import Unbuffered

Run = Callable[..., Any]
Spawn = Callable[..., subprocess.Popen[bytes]]


AT_ONCE = ("--weighting", "sublinear")
"""Without idf, which would be learned from the beginning of a stream before anything comes out."""


EQUAL = {"similarity": 1.0, "similarity_error": 0.0008}
"""What equal fingerprints tell."""


def line(key: object, text: str, **fields: Any) -> str:
    return json.dumps({"id": key, **fields, "text": text}) + "\n"


def record(number: int, copy: int = 0) -> str:
    """A text of its own number; copies of it differ in white space."""
    text = " ".join(f"{number}w{place}" for place in range(8)) + " " * copy
    return line(f"{number}.{copy}", text)


def keys_of(output: str | bytes) -> list[str]:
    return [json.loads(one)["id"] for one in output.splitlines()]


def stored_keys(path: str | Path) -> list[str]:
    with simindex.open(path, "r") as index:
        assert [found for found in index.check() if found.severity == "error"] == []
        return sorted(str(key) for batch in index.rows() for key in batch.keys or ())


def test_what_came_out_is_stored_and_drops_what_comes_later(run: Run) -> None:
    first = "".join(record(number) for number in range(5))
    result = run("dedup", "--index", "i.sim", "-d", 0, input=first)
    assert result.stdout == first
    assert "kept 5 of 5 documents, dropped 0 within 0 bits of a kept one, in " in result.stderr
    assert "MB of memory; i.sim had 0 rows and holds 5\n" in result.stderr
    second = "".join(record(number, 1) for number in range(3, 8))
    result = run(
        "dedup", "--index", "i.sim", "-d", 0, "--audit", "a.jsonl", "--json", input=second
    )
    assert keys_of(result.stdout) == ["5.1", "6.1", "7.1"]
    assert [json.loads(one) for one in Path("a.jsonl").read_text().splitlines()] == [
        {"dropped": f"{number}.1", "lost_to": f"{number}.0", "distance": 0, **EQUAL,
         "dropped_at": f"-:{number - 2}", "why": "same fingerprint", "lost_to_at": None}
        for number in (3, 4)
    ]
    summary = json.loads(result.stderr.splitlines()[-1])
    assert (summary["kept"], summary["dropped"], summary["rows"]) == (3, 2, 8)
    assert stored_keys("i.sim") == [*(f"{n}.0" for n in range(5)), "5.1", "6.1", "7.1"]


def test_an_index_is_created_by_the_recipe_asked_for_and_then_keeps_it(run: Run) -> None:
    recipe = ("--bits", 128, "--ngram", 1, "--weighting", "tfidf")
    Path("a.jsonl").write_text("".join(record(number) for number in range(9)))
    run("dedup", "a.jsonl", "--index", "i.sim", *recipe)
    with simindex.open("i.sim", "r") as index:
        made = index.recipe
        assert made is not None
        assert (made.bits, made.ngram, made.fitted, len(index)) == (128, 1, True, 9)
    for refused, has in ((("--bits", 64), "--bits 128"), (("--seed", 1), "--seed 0")):
        said = run("dedup", "a.jsonl", "--index", "i.sim", *refused, code=2).stderr
        assert f"it has {has}: leave out {refused[0]} {refused[1]}, or" in said
    for same in (recipe, ("--seed", 0), ("--idf-first", 3), ()):
        assert run("dedup", "a.jsonl", "--index", "i.sim", *same).stdout == ""
    with simindex.open("i.sim", "r") as index:
        assert index.recipe == made


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keys": False, "recipe": simindex.Recipe()}, "names its rows by ids"),
        ({"keys": "bytes", "recipe": simindex.Recipe()}, "names its rows by keys of bytes"),
        ({"keys": False}, "names its rows by ids"),
    ],
)
def test_an_index_that_cannot_hold_documents_is_refused(
    run: Run, options: dict[str, Any], said: str
) -> None:
    with simindex.open("i.sim", "n", options=simindex.IndexOptions(**options)):
        pass
    assert said in run("dedup", "--index", "i.sim", input=record(1), code=2).stderr
    simindex.open("i.sim", "w").close()  # the lock was given back


def test_an_index_of_fingerprints_is_refused(run: Run) -> None:
    with simindex.open("i.sim", "n") as index:
        index.append(np.arange(3, dtype=np.uint64), keys=["a", "b", "c"])
    assert "stores no recipe" in run("dedup", "--index", "i.sim", input=record(1), code=2).stderr


@pytest.mark.parametrize("keep", ["first", "longest"])
@pytest.mark.parametrize("keys", [None, "str"])
def test_an_index_without_rows_takes_the_recipe_of_the_run(
    run: Run, keep: str, keys: Any
) -> None:
    """As a process leaves it that ended before its first commit."""
    simindex.open("i.sim", "n", options=simindex.IndexOptions(keys=keys, bits=128)).close()
    Path("a.jsonl").write_text("".join(record(number) for number in range(9)))
    said = run("dedup", "a.jsonl", "--index", "i.sim", "--bits", 64, code=2).stderr
    assert "--bits 64 does not fit i.sim, whose fingerprints have 128 bits: leave --bits" in said
    given = ("--keep", keep, "--weighting", "tf", "-d", 4)
    assert len(run("dedup", "a.jsonl", "--index", "i.sim", *given).stdout.splitlines()) == 9
    with simindex.open("i.sim", "r") as index:
        assert index.recipe == simindex.Recipe(bits=128, weighting="tf")
        assert (index.h, len(index), index.options.keys) == (4, 9, "str")
    assert run("dedup", "a.jsonl", "--index", "i.sim").stdout == ""


def test_a_new_index_stores_times_if_asked_to(run: Run) -> None:
    run("dedup", "--index", "i.sim", "--times", input=record(1))
    run("dedup", "--index", "i.sim", "--times", input=record(2))
    with simindex.open("i.sim", "r") as index:
        assert index.options.times and len(index) == 2
    assert "0 rows expired" in run("expire", "i.sim", "--older-than", "1d").stderr
    run("dedup", "--index", "j.sim", input=record(1))
    assert "j.sim has no times" in run(
        "dedup", "--index", "j.sim", "--times", input=record(2), code=2
    ).stderr
    assert stored_keys("j.sim") == ["1.0"]
    simindex.open("j.sim", "w").close()  # the lock was given back
    assert "--times needs --index" in run("dedup", "--times", input=record(1), code=2).stderr


def test_an_index_that_is_written_elsewhere_is_refused(run: Run) -> None:
    run("dedup", "--index", "i.sim", input=record(1))
    with simindex.open("i.sim", "w"):
        result = run("dedup", "--index", "i.sim", input=record(2), code=3)
    assert result.stdout == ""
    assert stored_keys("i.sim") == ["1.0"]


def test_a_temporary_folder_beside_an_index_makes_no_sense(run: Run) -> None:
    said = run("dedup", "--index", "i.sim", "--temp-dir", ".", input="", code=2).stderr
    assert "nothing is temporary here: leave out --temp-dir" in said
    run("dedup", "--index", "j.sim", "--temp-dir", ".", "--keep", "longest", input="")
    assert not Path("i.sim").exists()


def test_an_index_with_equal_deleted_and_pending_rows_is_matched(run: Run) -> None:
    """Copies of one template in several segments, some of them deleted, are one near-duplicate."""
    template = json.loads(record(1))["text"]
    recipe = simindex.Recipe()
    options = simindex.IndexOptions(keys="str", recipe=recipe, batch_rows=500, min_merge=0)
    with simindex.open("i.sim", "n", options=options) as index:
        for part in range(3):
            keys = [f"t{part}.{copy}" for copy in range(450)]
            index.append(recipe.batch([template] * 450, keys=keys))
            index.commit()
        index.append(recipe.batch([json.loads(record(2))["text"]], keys=["gone"]))
        index.commit()
        index.delete(keys=["gone"])
        index.commit()
    result = run(
        "dedup", "--index", "i.sim", "--audit", "a", input=record(1, 3) + record(2, 1) + record(1)
    )
    assert keys_of(result.stdout) == ["2.1"]
    lost = [json.loads(one) for one in Path("a").read_text().splitlines()]
    assert [(one["dropped"], one["lost_to"][0], one["distance"]) for one in lost] == [
        ("1.3", "t", 0), ("1.0", "t", 0)
    ]


def test_documents_without_fingerprint_come_out_and_are_not_stored(run: Run) -> None:
    given = line("a", "") + record(1) + line("b", "!") + line("a", "")
    assert run("dedup", "--index", "i.sim", input=given).stdout == given
    assert run("dedup", "--index", "i.sim", "--buffer", 1, input=line("c", "")).stdout
    assert stored_keys("i.sim") == ["1.0"]


def test_too_many_bad_records_leave_whole_buffers(run: Run) -> None:
    given = "".join(record(number) for number in range(5)) + "oops\n" + record(7)
    result = run("dedup", "--index", "i.sim", "--buffer", 2, *AT_ONCE, input=given, code=4)
    assert keys_of(result.stdout) == stored_keys("i.sim") == ["0.0", "1.0", "2.0", "3.0"]
    assert "-:6: not JSON" in result.stderr
    assert "4 documents of this run are through and committed in i.sim" in result.stderr
    result = run("dedup", "--index", "j.sim", input="oops\n", code=4)
    assert "; j.sim was not created" in result.stderr
    assert not Path("j.sim").exists()
    result = run("dedup", "--index", "i.sim", input="oops\n", code=4)
    assert "nothing of this run is committed, i.sim is as it was" in result.stderr


def test_an_empty_stream_makes_an_empty_index(run: Run) -> None:
    assert run("dedup", "--index", "i.sim", input="").stdout == ""
    assert stored_keys("i.sim") == []


def test_the_index_is_not_read_as_a_document(run: Run) -> None:
    Path("pages").mkdir()
    Path("pages/a.txt").write_text("one two three four")
    for kept in (1, 0):
        result = run("dedup", "pages", "--index", "pages/i.sim")
        assert len(result.stdout.splitlines()) == kept
        assert f"kept {kept} of 1 document," in result.stderr


def stops(monkeypatch: pytest.MonkeyPatch, where: str, at: int) -> None:
    """Make the run fail as a full disk would, at one of the steps that end a buffer."""
    steps = 0

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == at:
                raise OSError(28, "No space left on device")
            return real(*args, **options)

        return call

    target = {"write": (dedup_run.Run, "_write"), "settle": (dedup_run, "settle"),
              "append": (simindex.Index, "append"), "commit": (simindex.Index, "commit")}[where]
    monkeypatch.setattr(*target, failing(getattr(*target)))


@pytest.mark.parametrize("where", ["write", "settle", "append", "commit"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_is_stored_was_written_wherever_a_run_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch, where: str, at: int
) -> None:
    """And what was written and is not stored comes again: nothing is lost, no line is cut."""
    given = "".join(record(number // 2, number % 2) for number in range(12))
    expected = keys_of(run("dedup", input=given).stdout)
    with monkeypatch.context() as patched:
        stops(patched, where, at)
        first = run("dedup", "--index", "i.sim", "--buffer", 4, input=given, code=3)
    written = keys_of(first.stdout)
    stored = stored_keys("i.sim") if Path("i.sim").exists() else []
    assert set(stored) <= set(written)
    assert len(written) - len(stored) <= 2  # of one buffer
    again = keys_of(run("dedup", "--index", "i.sim", "--buffer", 4, input=given).stdout)
    assert sorted(set(written) | set(again)) == sorted(expected)
    assert not set(stored) & set(again)
    assert stored_keys("i.sim") == sorted(expected)


def wait_until(reached: Callable[[], bool]) -> None:
    assert any(reached() for _ in range(1_000_000))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_a_kill_loses_no_document(spawn: Spawn, tmp_path: Path, how: signal.Signals) -> None:
    given = "".join(record(number // 3, number % 3) for number in range(3000)).encode()
    with (tmp_path / "out").open("wb") as out:
        process = spawn("dedup", "--index", "i.sim", "--buffer", 60, *AT_ONCE, stdout=out)
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(given[: len(given) // 2])
        process.stdin.flush()
        # So much that the second buffer is written: the first one is committed.
        wait_until(lambda: (tmp_path / "out").read_bytes().count(b"\n") > 20)
        process.send_signal(how)
        process.stdin.close()
        complaint = process.stderr.read()
        code = process.wait(timeout=30)
        process.stderr.close()
    if how == signal.SIGKILL:
        assert code == -how
    else:
        assert code == (130 if how == signal.SIGINT else 143)
        assert b"simindex: interrupted: " in complaint
    # A kill may cut the last line.
    whole = (tmp_path / "out").read_bytes().rpartition(b"\n")[0]
    written = keys_of(whole)
    stored = stored_keys(tmp_path / "i.sim")
    assert set(stored) <= set(written)
    assert len(written) - len(stored) <= 60
    process = spawn("dedup", "--index", "i.sim", "--buffer", 60)
    rest, _ = process.communicate(given, timeout=60)
    assert process.returncode == 0
    again = keys_of(rest)
    assert set(written) | set(again) == {f"{number}.0" for number in range(1000)}
    assert set(written) & set(again) == set(written) - set(stored)
    assert len(stored_keys(tmp_path / "i.sim")) == 1000


def test_ctrl_c_says_what_is_committed(spawn: Spawn, tmp_path: Path) -> None:
    process = spawn("dedup", "--index", "i.sim", "--buffer", 2, *AT_ONCE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(record(number) for number in range(5)).encode())
    process.stdin.flush()
    assert [process.stdout.readline() for _ in range(4)] == [
        record(number).encode() for number in range(4)
    ]
    wait_until(lambda: len(stored_keys(tmp_path / "i.sim")) == 4)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    rest, complaint = process.communicate(timeout=30)
    assert rest == b""
    assert complaint == (
        b"simindex: interrupted: 4 documents of this run are through and committed in i.sim; what "
        b"was printed after these comes again in a second run\n"
    )


def test_a_reader_that_goes_away_leaves_what_it_did_not_get(spawn: Spawn, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(record(number) for number in range(5000)))
    process = spawn("dedup", "a.jsonl", "--index", "i.sim", "--buffer", 1000, "-q")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdin is not None
    process.stdin.close()
    first = process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 141
    process.stderr.close()
    assert first == record(0).encode()
    kept = stored_keys(tmp_path / "i.sim") if (tmp_path / "i.sim").exists() else []
    assert len(kept) % 1000 == 0
    assert len(kept) < 5000


def test_what_was_written_to_a_file_is_synced_before_each_commit(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard output is not a file here; the audit is."""
    Path("a").touch()
    steps: list[str] = []
    fsync, commit = os.fsync, simindex.Index.commit

    def syncing(fd: int) -> None:
        if os.fstat(fd).st_ino == Path("a").stat().st_ino:
            steps.append(f"synced {len(Path('a').read_text().splitlines())}")
        fsync(fd)

    def committing(index: simindex.Index) -> None:
        steps.append("commit")
        commit(index)

    given = "".join(record(number, copy) for number in range(2) for copy in range(3))
    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(simindex.Index, "commit", committing)
    run("dedup", "--index", "i.sim", "--buffer", 3, "--audit", "a", input=given)
    assert steps[:4] == ["synced 2", "commit", "synced 4", "commit"]


def test_a_buffer_is_written_while_the_next_one_is_searched_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And committed before the next one is written."""
    steps: list[str] = []
    searched = [Event() for _ in range(4)]
    write, commit, search = dedup_run.Run._write, simindex.Index.commit, dedup_run.nearest_ahead

    def writing(self: Any, *given: Any) -> None:
        # While buffer n is written, the search of buffer n + 1 begins; the last has none.
        number = sum(step == "write" for step in steps) + 1
        assert number == 4 or searched[number - 1].wait(30)
        write(self, *given)
        steps.append("write")

    def committing(index: simindex.Index) -> None:
        steps.append("commit")
        commit(index)

    def searching(*given: Any, **options: Any) -> Any:
        searched[sum(event.is_set() for event in searched)].set()
        return search(*given, **options)

    monkeypatch.setattr(dedup_run.Slot, "waits", True)
    monkeypatch.setattr(dedup_run.Run, "_write", writing)
    monkeypatch.setattr(simindex.Index, "commit", committing)
    monkeypatch.setattr(dedup_run, "nearest_ahead", searching)
    given = "".join(record(number // 2, number % 2) for number in range(16))
    run("dedup", "--index", "i.sim", "--buffer", 4, *AT_ONCE, input=given)
    assert steps[:8] == ["write", "commit"] * 4
    assert len(stored_keys("i.sim")) == 8


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["first", "none"])
def test_what_waits_changes_neither_output_nor_audit_nor_rows(
    run: Run, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """Copies and edits follow in the same buffer, in the next, and later ones."""
    rng = np.random.default_rng(5)
    texts: list[str] = []
    for number in range(600):
        words = [f"{number}w{place}" for place in range(60)]
        if number % 3:
            words = texts[int(rng.integers(max(0, number - 40), number))].split()
            words[int(rng.integers(60))] = f"edit{number}"
        texts.append(" ".join(words))
    Path("a.jsonl").write_text("".join(line(number, one) for number, one in enumerate(texts)))
    found = []
    for waits in (False, True):
        monkeypatch.setattr(dedup_run.Slot, "waits", waits)
        name = f"{waits}.sim"
        again = [
            run("dedup", "a.jsonl", "--index", name, "--buffer", 16, "--mark", "--keep", policy,
                "--audit", f"{waits}.jsonl").stdout for _ in range(2)
        ]
        found.append((again, Path(f"{waits}.jsonl").read_bytes(), stored_keys(name)))
    assert found[0] == found[1]
    marked = found[0][0][0]
    assert 100 < marked.count('"distance"') < 450 or policy == "none"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_whose_output_nobody_reads(
    spawn: Spawn, tmp_path: Path, how: signal.Signals
) -> None:
    """The thread that writes waits for the reader; the run ends without it, and Python too."""
    (tmp_path / "a.jsonl").write_text("".join(record(number) for number in range(8000)))
    process = spawn("dedup", "a.jsonl", "--index", "i.sim", "--buffer", 3000, "-q")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdin is not None
    process.stdin.close()
    process.stdout.readline()
    process.send_signal(how)
    assert process.wait(timeout=30) == (130 if how == signal.SIGINT else 143)
    complaint = process.stderr.read()
    process.stdout.close()
    process.stderr.close()
    assert complaint.startswith(b"simindex: interrupted: ")
    assert b"Fatal" not in complaint
    kept = stored_keys(tmp_path / "i.sim") if (tmp_path / "i.sim").exists() else []
    assert kept == []


def test_wide_fingerprints_go_through_an_index(run: Run) -> None:
    given = "".join(record(number // 2, number % 2) for number in range(40))
    result = run("dedup", "--index", "i.sim", "--bits", 256, "--buffer", 7, input=given)
    assert keys_of(result.stdout) == [f"{number}.0" for number in range(20)]
    with simindex.open("i.sim", "r") as index:
        assert {batch.bits for batch in index.rows()} == {256}


def test_near_duplicates_of_any_policy_lose_to_what_is_stored(run: Run) -> None:
    run("dedup", "--index", "i.sim", input=record(1))
    longer = record(1, 9)
    for keep in ("first", "longest", "none"):
        assert run("dedup", "--index", "i.sim", "--keep", keep, input=longer).stdout == ""
    assert stored_keys("i.sim") == ["1.0"]


def test_with_none_later_copies_of_dropped_ones_are_dropped(run: Run) -> None:
    given = record(1) + record(2) + record(1, 1)
    options = ("dedup", "--index", "i.sim", "--keep", "none", "--audit", "a")
    assert keys_of(run(*options, input=given).stdout) == ["2.0"]
    assert [json.loads(one) for one in Path("a").read_text().splitlines()] == [
        {"dropped": "1.0", "lost_to": "1.1", "distance": 0, **EQUAL,
         "why": "same fingerprint", "dropped_at": "-:1",
         "lost_to_at": "-:3"},
        {"dropped": "1.1", "lost_to": "1.0", "distance": 0, **EQUAL,
         "why": "same fingerprint", "dropped_at": "-:3",
         "lost_to_at": "-:1"},
    ]
    assert run(*options, input=record(1, 2) + record(2, 1)).stdout == ""
    lost = [json.loads(one) for one in Path("a").read_text().splitlines()]
    assert [one["lost_to"] for one in lost[2:]] == ["1.0", "2.0"]
    assert stored_keys("i.sim") == ["1.0", "2.0"]


@pytest.mark.slow
def test_a_page_twenty_thousand_times_is_kept_once(run: Run) -> None:
    """Compared with each other these would be 200 million pairs."""
    page = json.loads(record(1))["text"]
    given = "".join(line(number, page) for number in range(20_000))
    result = run("dedup", "--index", "i.sim", "--buffer", 20_000, input=given)
    assert keys_of(result.stdout) == [0]
    assert run("dedup", "--index", "i.sim", "--keep", "none", input=given).stdout == ""
    with simindex.open("i.sim", "r") as index:
        assert len(index) == 1
        assert np.concatenate([batch.fingerprints for batch in index.rows()]).shape == (1,)


def test_a_second_run_marks_no_document_and_lists_what_it_knows(run: Run) -> None:
    given = "".join(record(number, copy) for number in range(3) for copy in range(2))
    run("dedup", "--index", "i.sim", "--audit", "a", input=given)
    listed = Path("a").read_text()
    assert len(listed.splitlines()) == 3
    again = run("dedup", "--index", "i.sim", "--audit", "a", input=given)
    assert keys_of(again.stdout) == []
    both = [json.loads(line) for line in Path("a").read_text().splitlines()]
    assert [one["lost_to_at"] for one in both] == ["-:1", "-:3", "-:5", None, None, None]
    assert [(one["dropped"], one["lost_to"], one["why"]) for one in both[3:]] == [
        (f"{number}.0", f"{number}.0", "same id") for number in range(3)
    ]
    marked = run("dedup", "--index", "i.sim", "--mark", input=given)
    marks = [json.loads(line)["near_duplicate_of"] for line in marked.stdout.splitlines()]
    assert [mark is None for mark in marks] == [True, False] * 3


@pytest.mark.parametrize("audit", ["in.jsonl", "i.sim/FORMAT", "i.sim"])
def test_an_audit_is_not_written_over_something_else(run: Run, audit: str) -> None:
    Path("in.jsonl").write_text(record(1) + record(2))
    run("dedup", "--index", "i.sim", "in.jsonl")
    files = [path for path in Path().rglob("*") if path.is_file()]
    before = {path: path.read_bytes() for path in files if path.name != "lock.mdb"}
    result = run("dedup", "--index", "i.sim", "in.jsonl", "--audit", audit, code=2)
    assert "name another file" in result.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_no_write_is_cut_where_python_does_not_buffer_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With python -u a write to a disk that fills writes a part, and says so by a number only."""
    with io.FileIO(tmp_path / "out", "w") as raw:
        monkeypatch.setattr(output_streams.sys, "stdout", SimpleNamespace(buffer=raw))
        with output_streams.whole_writes() as output:
            assert isinstance(output, Unbuffered)
            output.write(b"whole")
        assert not raw.closed
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_a_line_that_is_piped_twice_loses_to_itself_by_name(run: Run, objects: Any) -> None:
    line = json.dumps({"text": "one two three four five"}) + "\n"
    assert run("dedup", "--index", "s.sim", input=line).stdout == line
    with simindex.open("s.sim") as index:
        (kept,) = [str(key) for batch in index.rows() for key in batch.keys or ()]
    assert run("dedup", "--index", "s.sim", "--audit", "a.jsonl", input=line).stdout == ""
    (dropped,) = objects(Path("a.jsonl").read_text())
    assert (dropped["lost_to"], dropped["distance"]) == (kept, 0)
    assert dropped["dropped"] != kept
    (marked,) = objects(run("dedup", "--index", "s.sim", "--mark", input=line).stdout)
    assert marked["near_duplicate_of"] == {"key": kept, "distance": 0}


@pytest.mark.slow
def test_an_index_with_sketches_takes_documents(run: Run, write_jsonl: Any) -> None:
    """Those that it has already, too, and those of several chunks in one batch."""
    recipe = simindex.Recipe(sketch_bits=128)
    with simindex.open("i.sim", "n") as index:
        index.append(recipe.batch(["an old text of several words"], keys=["old"]))
    texts = [f"first{i} second{i * 7} third{i} of many words" for i in range(4500)]
    lines = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)]
    path = write_jsonl("a.jsonl", lines)
    run("dedup", path, "--index", "i.sim", "-d", 0)
    run("build", "i.sim", write_jsonl("b.jsonl", [{"id": "d3", "text": texts[9]}]), "--append")
    run("check", "i.sim")
    with simindex.open("i.sim") as index:
        assert len(index) == 4501
        found = index.query(recipe.batch(texts[9:10]), similarity=0.99)
        assert sorted(found.keys() or ()) == ["d3", "d9"]
