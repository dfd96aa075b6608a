"""The program as a process: pipes, Ctrl-C and exit codes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import simindex
from simindex._kernels import _native
from simindex.cli import program

Run = Callable[..., Any]
Spawn = Callable[..., subprocess.Popen[bytes]]


def record(number: int) -> bytes:
    return json.dumps({"id": number, "text": f"text of number {number} alone"}).encode() + b"\n"


def wait_for_line(process: subprocess.Popen[bytes], part: bytes) -> bytes:
    assert process.stderr is not None
    for line in process.stderr:
        if part in line:
            return line
    pytest.fail(f"ended without {part!r}")


def wait_for_rows(path: Path, rows: int) -> None:
    for _ in range(100_000):
        with simindex.open(path, "r") as index:
            if len(index) >= rows:
                return
    pytest.fail(f"{path} never has {rows} rows")


@pytest.mark.parametrize(("commit_every", "kept"), [(10, 20), (0, 0)])
def test_ctrl_c_leaves_the_index_at_its_last_commit(
    spawn: Spawn, tmp_path: Path, commit_every: int, kept: int
) -> None:
    options = simindex.IndexOptions(keys="str", recipe=simindex.Recipe())
    with simindex.open(tmp_path / "i.sim", "n", options=options):
        pass
    every = ("--commit-every", commit_every) if commit_every else ()
    process = spawn("build", "i.sim", "-", "--append", *every, "--max-errors", 1)
    assert process.stdin is not None
    # Documents are read in tens: two are committed while what follows the bad record is awaited.
    process.stdin.write(b"".join(map(record, range(20))) + b"oops\n")
    process.stdin.flush()
    wait_for_line(process, b"-:21: not JSON")
    wait_for_rows(tmp_path / "i.sim", kept)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in complaint
    said = f"{kept} documents of this run are" if kept else "nothing of this run is"
    assert f"simindex: interrupted: {said} committed".encode() in complaint
    with simindex.open(tmp_path / "i.sim", "r") as index:
        assert len(index) == kept
        assert [finding for finding in index.check() if finding.severity == "error"] == []


@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_end_other_commands(
    spawn: Spawn, tmp_path: Path, how: signal.Signals, code: int
) -> None:
    process = spawn("dedup", "-", "--max-errors", 1, "--temp-dir", tmp_path)
    assert process.stdin is not None
    process.stdin.write(b"oops\n")
    process.stdin.flush()
    wait_for_line(process, b"-:1: not JSON")
    process.send_signal(how)
    # Standard input stays open: a thread is waiting for it when the interpreter exits.
    assert process.wait(timeout=30) == code
    _, complaint = process.communicate(timeout=30)
    assert complaint == b"simindex: interrupted\n"
    assert list(tmp_path.glob("simindex-dedup-*")) == []


def test_a_reader_that_goes_away_is_no_error(run: Run, spawn: Spawn, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"".join(map(record, range(5000))))
    run("build", "i.sim", "a.jsonl", "-q")
    process = spawn("export", "i.sim")
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b'{"key"')
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 141
    process.stderr.close()
    assert process.stdin is not None
    process.stdin.close()
    dedup = spawn("dedup", "a.jsonl", "-q")
    assert dedup.stdout is not None
    dedup.stdout.close()
    assert dedup.stderr is not None
    assert dedup.stderr.read() == b""
    assert dedup.wait(timeout=30) == 141
    dedup.stderr.close()
    assert dedup.stdin is not None
    dedup.stdin.close()


def test_dedup_is_a_filter(spawn: Spawn) -> None:
    lines = [record(1), record(2), record(1)]
    process = spawn("dedup", "-d", 0)
    out, complaint = process.communicate(b"".join(lines), timeout=30)
    assert out == lines[0] + lines[1]
    assert b"kept 2 of 3 documents" in complaint


def test_the_program_tells_its_version_and_commands(run: Run) -> None:
    told = run("--version").stdout
    assert re.fullmatch(r"simindex [\d.]+ \([a-z0-9-]+ instructions; index format 1\.0\)\n", told)
    assert f"({_native.levels()[_native.default_level()]} " in told
    listed = run("--help").stdout
    for command in [
        "build", "query", "dedup", "fingerprint", "compact", "delete", "stats", "check", "export",
        "demo",
    ]:
        assert command in listed
        assert "Usage: simindex" in run(command, "--help").stdout
    run("nonsense", code=2)


def test_failures_of_the_system_are_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device", "i.sim")

    monkeypatch.setattr("simindex.cli.commands.stats.open_index", full)
    assert run("stats", "i.sim", code=3).stderr == "simindex: i.sim: No space left on device\n"

    def exhausted(*args: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("simindex.cli.commands.stats.open_index", exhausted)
    assert run("stats", "i.sim", code=3).stderr == "simindex: out of memory\n"


def test_names_of_files_do_not_speak_to_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a\x1b]0;owned\x07\x9b.txt").write_bytes(b"\xff")
    result = run("build", "x.sim", "docs", code=4)
    assert "docs/a\\x1b]0;owned\\x07\\x9b.txt" in result.stderr
    assert result.stderr.strip().isprintable()


# Errors as data, help, nothing to do --------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["query", "none.sim", "--text", "a"], 3, "IndexNotFound"),
        (["build", "j.sim", "none.txt"], 4, "InvalidInput"),
        (["query", "i.sim", "--text", "a b c", "-d", "65"], 2, "InvalidOption"),
        (["plan", "--rows", "many"], 2, "BadParameter"),
        (["query", "i.sim"], 2, "UsageError"),
        (["query", "i.sim", "--text", "a", "--unheard-of"], 2, "NoSuchOption"),
    ],
)
def test_errors_are_objects_where_results_are(
    run: Run, arguments: list[str], code: int, error: str
) -> None:
    simindex.open("i.sim", "n", options=simindex.IndexOptions(recipe=simindex.Recipe())).close()
    result = run(*arguments, "--json", code=code)
    told = json.loads(result.stderr)
    assert (result.stdout, told["exit_code"], told["error"]) == ("", code, error)
    plain = run(*arguments, code=code).stderr
    assert told["message"].removesuffix(".") in " ".join(plain.split())


def test_an_error_carries_its_data(run: Run) -> None:
    told = json.loads(run("query", "none.sim", "--text", "a", "--json", code=3).stderr)
    assert told["path"].endswith("none.sim")
    assert told["message"] == f"{told['what']}: create one with `simindex build`"


def test_h_is_help_and_d_the_distance_everywhere(run: Run) -> None:
    assert run("-h").stdout == run("--help").stdout
    for name, command in program.every_command().items():
        assert run(name, "-h").stdout == run(name, "--help").stdout
        for option in command.params:
            if option.name == "h":
                assert option.opts == ["-d", "--distance"]
            assert "-h" not in option.opts


@pytest.mark.parametrize("options", [[], ["--append"], ["--overwrite"]])
def test_inputs_without_a_document_change_nothing(run: Run, options: list[str]) -> None:
    Path("empty").mkdir()
    if options:
        run("build", "i.sim", "-", input=record(1))
        before = run("export", "i.sim").stdout
    told = run("build", "i.sim", "empty", *options, code=1).stderr
    assert "the inputs hold no document: i.sim " in told
    if options:
        assert "is as it was" in told
        assert run("export", "i.sim").stdout == before
    else:
        assert "was not created" in told
        assert not Path("i.sim").exists()


def test_nothing_to_do_is_told_by_the_exit_code(run: Run) -> None:
    run("build", "i.sim", "-", input=record(1))
    assert "nothing was looked up" in run("query", "i.sim", "--text", " ", code=1).stderr
    assert "nothing was deleted" in run("delete", "i.sim", "--key", "zz", code=1).stderr
    assert run("delete", "i.sim", "--key", "zz", "--json", code=1).stdout == (
        '{"deleted": 0, "deleted_rows": 0, "rows": 1}\n'
    )
    assert "no document" in run("fingerprint", "-", code=1, input="").stderr
    assert "no document" in run("dedup", input="").stderr


def test_a_question_without_an_answer_is_told_the_nearest(run: Run) -> None:
    run("build", "i.sim", "-", input=record(1))
    told = run("query", "i.sim", "--text", "quite another text, of something else", "--quiet")
    assert (told.stdout, told.stderr) == ("", "")
    told = run("query", "i.sim", "--text", "quite another text, of something else").stderr
    with simindex.open("i.sim") as index:
        rows = simindex.Recipe().batch(["quite another text, of something else"])
        (match,) = index.top(rows, k=1)
    assert f"the nearest to text:1 is 1, at distance {match.distance}\n" in told
    assert "nearest" not in run("query", "i.sim", "--text", "text of number 1 alone").stderr


def test_piped_lines_are_looked_up_without_a_dash(run: Run, spawn: Spawn) -> None:
    run("build", "i.sim", "-", input=record(1))
    out, _ = spawn("query", "i.sim").communicate(record(1), timeout=60)
    assert out == b"1\t1\t0\n"
    out, _ = spawn("fingerprint").communicate(record(1), timeout=60)
    assert out.endswith(b"\t1\n")
    process = spawn("query", "i.sim", stdin=subprocess.DEVNULL)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, b"nothing to look up: give an INPUT" in told) == (2, True)
