"""Mistakes that people make in the shell: each is answered by what happened and what to do next.

A row is a command, its exit code, and words that its answer has. Nothing on the disk changes.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import simindex
from simindex.cli import program

Run = Callable[..., Any]

FOX = "The quick brown fox jumps over the lazy dog and runs into the dark wood"
BOX = "Pack my box with five dozen liquor jugs before the evening train has left"

MISTAKES = [
    # The program, its commands and options
    ("biuld pages.sim docs", 2, "No such command 'biuld'. Did you mean 'build'?"),
    ("-d 3", 2, "No such option '-d'"),
    ("build", 2, "Missing argument 'INDEX'"),
    ("build new.sim", 2, "nothing to build from: give an INPUT after INDEX"),
    ("build new.sim docs --apend", 2, "Did you mean"),
    ("build pages.sim docs --append --overwrite", 2, "exclude each other"),
    ("build new.sim docs --on-existing skip", 2, "--on-existing needs --append"),
    ("build pages.sim docs --append --on-existing maybe", 2, "'replace', 'skip', 'error'"),
    ("pairs pages.sim docs", 2, "unexpected extra argument (docs)"),
    ("stats", 2, "Missing argument 'INDEX'"),
    ("plan", 2, "Missing option '--rows'"),
    # Where the index is to be
    ("build pages.sim docs", 3, "add to it with --append, or replace it with --overwrite"),
    ("build pages.sim docs --append --bits 128", 2, "it has --bits 64: leave out --bits 128"),
    ("build pages.sim docs --append --on-existing error", 4, "--on-existing replace"),
    ("build docs new.sim", 3, "docs is not an index (it contains 'box.txt'), and was not changed"),
    ("build docs docs", 3, "name another path for the index"),
    ("build docs docs --overwrite", 3, "docs is not an index"),
    ("dedup docs --index -q", 2, "'-q' looks like an option, and a path belongs here: give one, or "
     "./-q if that is its name"),
    ("build -- -q docs", 2, "./-q if that is its name"),
    ("build '' docs", 2, "the name of the index is empty"),
    ("build /proc/new.sim docs", 3, "no index can be created at /proc/new.sim"),
    ("build missing/new.sim docs", 3, "there is no folder missing for an index: create it first"),
    ("build file.sim docs", 3, "file.sim is not a folder; not overwritten: name another path"),
    ("build file.sim docs --overwrite", 3, "file.sim is not a folder; not overwritten"),
    ("build file.sim/new.sim docs", 3, "file.sim is not a folder"),
    ("build dangling.sim docs", 3, "dangling.sim is a symbolic link to nothing"),
    # Inputs
    ("build new.sim nothere", 4, "nothere: no such file or folder"),
    ("build new.sim bad.hex", 4, "bad.hex:1: 'zz' is not a fingerprint", "new.sim was not created"),
    ("build new.sim bad.jsonl --weighting tf", 4, "bad.jsonl:2: not JSON",
     "new.sim was not created"),
    ("build pages.sim docs/fox.txt --append --prune", 2, "docs/fox.txt is not a folder: it deletes "
     "the documents whose keys begin with the name of a folder that no longer has them"),
    ("build new.sim docs/*.md", 4, "docs/*.md: no file or folder matches"),
    ("build new.sim @nolist", 4, "@nolist: cannot be opened: No such file"),
    ("build new.sim emptyfolder", 1, "the inputs hold no document: new.sim was not created"),
    ("build new.sim empty.jsonl", 1, "the inputs hold no document"),
    ("build new.sim docs --include *.md", 1, "the inputs hold no document"),
    ("build new.sim pages.sim", 4, "pages.sim is an index, which holds no texts"),
    ("build pages.sim pages.sim --append", 4, "pages.sim is an index, which holds no texts"),
    ("build new.sim binary.dat", 4, "binary.dat: binary file"),
    ("build new.sim bad.jsonl", 4, "bad.jsonl:2: not JSON", "--max-errors N skips up to N"),
    ("build new.sim nofield.jsonl", 4, "has no field 'text' (it has 'id', 'body')",
     "was not created: name the field of the text with --text-field"),
    ("build new.sim news.jsonl --text-field body", 4, "name the field of the text with"),
    ("build new.sim table.csv --text-field nope", 4, "has no column 'nope'", "--text-field"),
    ("build new.sim cut.jsonl.gz", 4, "truncated: the file ends within a member"),
    ("build new.sim list.json", 4, "list.json:1: truncated: the array is not closed"),
    ("build new.sim latin.txt", 4, "latin.txt:1: not UTF-8: byte 0xe9 at column 4",
     "convert it to UTF-8, leave this file out, or skip"),
    ("build new.sim rows", 1, "skipped 1 file: fingerprints (rows/rows.npy); `build` "
     "and `query` read such files if you name them"),
    ("build new.sim rows/rows.npy keyed.jsonl", 4, "keyed.jsonl:1: here rows have keys, and rows "
     "before it have ids or no names", "build another index of these rows"),
    ("build numbers.sim keyed.jsonl --append", 4, "and those of the index have ids or no names"),
    ("build pages.sim rows/rows.npy --append", 4, "rows.npy[0]: here rows have ids or no names, "
     "and those of the index have keys", "give each row a key, as in {\"key\": \"a.html\""),
    ("build new.sim rows/rows.npy docs", 4, "rows.npy holds fingerprints and docs texts"),
    ("build wide.sim rows/rows.npy --append", 4, "of 64 bits, and 128 are needed",
     "build another index of those of 64 bits"),
    ("build new.sim floats.npy", 4, "an array of float64 and shape (4,), not uint64"),
    ("dedup rows/rows.npy", 4, "holds fingerprints, and this command needs the texts: name the "
     "files that have the texts", "`simindex clusters INDEX` list the near-duplicates"),
    ("fingerprint rows/rows.npy", 4, "this command needs the texts"),
    ("build new.sim doc.pdf", 4, "a PDF file, which cannot be read"),
    ("build new.sim news.jsonl --format xml", 2, "'xml' is not one of"),
    ("build new.sim - -", 4, "standard input (-) can be read only once: name it"),
    # Recipes and structures
    ("build new.sim docs --bits 65", 2, "--bits 65 is not valid: give a multiple of 64"),
    ("build new.sim docs --bits -64", 2, "'-64' is not a whole number"),
    ("build new.sim docs --bits 1e99", 2, "'1e99' is not a whole number", "or too large"),
    ("build new.sim docs --bits lots", 2, "'lots' is not a whole number", "give one like 128"),
    ("build new.sim docs --ngram 0", 2, "--ngram 0 is not valid: give a number from 1 to 5"),
    ("build new.sim docs --ngram a,b", 2, "'a,b' is not a list of numbers such as 3 or 1,2,3"),
    ("build new.sim docs --weighting tfdf", 2, "'tfdf' is not one of"),
    ("build new.sim docs --weighting tf --idf-sample 0.5", 2, "--weighting tf learns none"),
    ("build new.sim docs --weighting tfidf --idf-sample 7", 2, "a share above 0 and up to 1"),
    ("build new.sim docs --stemmer klingon", 2, "not an algorithm of Snowball: give one of"),
    ("build new.sim docs --stop-words xx", 2, "not a language with stop words: give @FILE"),
    ("build new.sim docs --structures foo", 2, "--structures foo is not valid: give \"psm\""),
    ("build new.sim docs --batch-rows 0", 2, "--batch-rows 0 is not valid"),
    ("build new.sim docs --commit-every 0", 2, "'0' is not a whole number of 1 or more"),
    ("build new.sim docs --seed 5e9", 2, "'5e9' is not a whole number of 0 to 4,294,967,295"),
    ("build new.sim docs --key-secret docs/fox.txt", 2, "does not hold 32 hexadecimal digits"),
    ("compact pages.sim --structures ''", 2, "--structures \"\" is not valid"),
    # Indexes that are none, or of another kind
    ("query none.sim --text a", 3, "there is no index at", "`simindex build`"),
    ("query docs --text 'a b c'", 3, "there is no index at"),
    ("query file.sim --text 'a b c'", 3, "file.sim is not a folder, so it is not an index"),
    ("query dangling.sim --text a", 3, "a symbolic link to nothing"),
    ("query torn.sim --text a", 3, "data.mdb is missing: `simindex repair`"),
    ("query cut.sim --text a", 3, "is damaged", "`simindex repair`"),
    ("check cut.sim", 3, "is damaged", "`simindex repair`"),
    ("repair docs", 3, "there is no index at docs, and no file of one: name the folder"),
    ("query docs pages.sim", 2, "docs is not an index: the INDEX comes before the inputs"),
    ("query numbers.sim --text 'a b c'", 2, "stores no recipe",
     "give --fingerprint HEX, or a .hex or .npy file of fingerprints"),
    ("query numbers.sim docs", 2, "stores no recipe"),
    ("query wide.sim --fingerprint 0123456789abcdef", 2,
     "--fingerprint has 64 bits, and those of wide.sim 128", "give 32 hexadecimal digits"),
    ("dedup docs --index numbers.sim", 2, "name an index that was built from texts"),
    ("fingerprint --recipe numbers.sim --text a", 2, "leave out --recipe"),
    # Questions
    ("query pages.sim", 2, "nothing to look up: give an INPUT, --text, --fingerprint"),
    ("query pages.sim nothere.txt", 4, "nothere.txt: no such file or folder"),
    ("query pages.sim 'some text'", 4, "a text is looked up with --text TEXT"),
    (f"query pages.sim '{'long text ' * 400}'", 4, "...: no such file or folder", "--text TEXT"),
    (f"dedup '{'long text ' * 400}'", 4, "...: no such file or folder: check the name"),
    ("query pages.sim --text ''", 1, "nothing was looked up: no document has a fingerprint"),
    ("query pages.sim --text 'a b c' -d 65", 2, "--distance 65 is not a valid distance"),
    ("query pages.sim --text 'a b c' -d -1", 2, "'-1' is not a whole number", "like 3"),
    ("query pages.sim --text 'a b c' -d three", 2, "'three' is not a whole number"),
    ("query pages.sim --text 'a b c' --recall 95", 2, "a number above 0 and up to 1"),
    ("query pages.sim --text 'a b c' --recall 0,95", 2, "give one like 0.95"),
    ("query pages.sim --text 'a b c' --method fast", 2, "--method fast is unknown: give one of"),
    ("query pages.sim --text 'a b c' --method issl", 2, "`simindex compact --structures`, or use"),
    ("query pages.sim --text 'a b c' --method bphs:G=4,g=1", 2, "needs permuted tables"),
    ("query pages.sim --text 'a b c' --threads 0", 2, "'0' is not a whole number of 1 or more"),
    ("query pages.sim --text 'a b c' --memory 64X", 2, "'64X' is not a size", "give one like 64G"),
    ("query pages.sim --text 'a b c' --memory-limit 1M", 2,
     "--memory-limit 1M is too little: the process takes", "looks anything up: give at least"),
    ("query pages.sim --text 'a b c' --top 0", 2, "give a whole number from 1 on"),
    ("query pages.sim --text 'a b c' --top 5 -d 3", 2, "leave out --distance"),
    ("query pages.sim --text 'a b c' --max-error 2", 2, "give --top, too"),
    ("query pages.sim --fingerprint 123", 2, "'123' is not 16 hexadecimal digits"),
    ("explain pages.sim", 2, "give one --text or one --fingerprint"),
    ("explain pages.sim --text ''", 2, "--text has no fingerprint: empty"),
    ("explain pages.sim --text '!!!'", 2, "--text has no fingerprint: it has no words that count"),
    ("query pages.sim --text '!!!'", 1, "text:1: no fingerprint: it has no words that count"),
    ("pairs pages.sim -d 65", 2, "--distance 65 is not a valid distance"),
    ("pairs pages.sim --memory-limit 1", 2, "at least", "give at least that"),
    ("clusters pages.sim --mode stars", 2, "'stars' is not one of 'star', 'components'"),
    ("fingerprint --text ''", 1, "no document has a fingerprint"),
    ("fingerprint --text 'a b' --weighting tfidf", 2, "there is no INPUT: give one, or --recipe"),
    ("plan --rows -5", 2, "'-5' is not a whole number"),
    ("plan --rows 10M --bits 100", 2, "--bits 100 is not valid: give a multiple of 64"),
    ("plan --rows 8e9 --memory 6G", 2, "divide the rows among machines"),
    ("plan --rows 8e9 --machines 7 --price inf", 2, "'inf' is not a price of 0 or more"),
    ("plan --rows 8e9 --machines 7 --price nan", 2, "'nan' is not a price", "give one like 2.5"),
    ("plan --rows 8e9 --machines 7 --price -1", 2, "'-1' is not a price"),
    ("plan --rows 8e9 --machines 7 --memory 0", 2, "--memory 0", "give a size like 64G"),
    ("tune pages.sim --recall 0.9", 2, "give --audit, too"),
    # What is dropped, deleted and written
    ("dedup nothere.jsonl", 4, "nothere.jsonl: no such file or folder"),
    ("dedup docs --keep shortest", 2, "'shortest' is not a policy: give first, longest"),
    ("dedup docs --keep highest:date", 4, "a text file has no field 'date' to rank it by",
     "give --keep first or longest"),
    ("dedup docs --audit nofolder/x.jsonl", 2, "name a file in a folder that exists"),
    ("dedup docs --audit docs/fox.txt", 2, "is the input docs, or in it: name another file"),
    ("dedup docs --index pages.sim --bits 128", 2, "it has --bits 64: leave out --bits 128"),
    ("dedup docs --temp-dir nofolder", 2, "name another with --temp-dir"),
    ("delete pages.sim", 2, "nothing to delete: give --id, --key or --keys-from"),
    ("delete pages.sim --key nope", 1, "nothing was deleted; pages.sim holds 2 rows"),
    ("delete pages.sim --id 12", 2, "documents of pages.sim have keys: give --key"),
    ("delete pages.sim --id abc", 2, "'abc' is not an id: give a whole number"),
    ("delete pages.sim docs/fox.txt", 2, "unexpected extra argument (docs/fox.txt)"),
    ("delete numbers.sim --key a", 2, "rows of numbers.sim have ids and no keys: give --id"),
    ("delete pages.sim --keys-from binary.dat", 4, "nothing was deleted"),
    ("delete pages.sim --keys-from docs", 4, "docs: cannot be opened: Is a directory"),
    ("export pages.sim --output xml", 2, "'xml' is not one of"),
    ("export pages.sim --format csv", 2, "--output names the format of results"),
    ("merge pages.sim --output week.sim", 2, "the new index is named with -o, or --out"),
    ("dedup news.jsonl --index pages.sim --audit gone.csv", 2, "--audit gone.csv is csv, and each "
     "run with --index adds lines to the file", "name a file that ends with .jsonl"),
    ("pairs pages.sim -o pairs.xls", 2, "-o pairs.xls does not say the format", ".parquet"),
    ("pairs pages.sim -o pages.sim/pairs.csv", 2, "-o pages.sim/pairs.csv is the index pages.sim"),
    ("pairs pages.sim -o no/where.csv", 2, "cannot be written: No such file or directory"),
    ("pairs pages.sim -o '' --output csv", 2, "the name of the file is empty"),
    ("query pages.sim news.jsonl -o news.jsonl", 2, "-o news.jsonl is the input news.jsonl"),
    ("query pages.sim docs -o docs/found.csv", 2, "-o docs/found.csv is the input docs, or in it"),
    ("pairs pages.sim -o docs --output csv", 2, "-o docs cannot be written: it is a folder"),
    ("demo --path emptyfolder", 4, "name another folder with --path"),
    ("demo --path nofolder", 4, "nofolder: there is no such folder: name another folder with"),
    ("demo --path file.sim", 4, "file.sim: is not a folder: name another folder with --path"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with inputs and indexes, sound ones and others."""
    place = tmp_path_factory.mktemp("mistakes")
    files = {
        "docs/fox.txt": FOX.encode(), "docs/box.txt": BOX.encode(), "empty.jsonl": b"",
        "news.jsonl": json.dumps({"id": "n", "text": FOX}).encode() + b"\n",
        "bad.jsonl": json.dumps({"id": "n", "text": FOX}).encode() + b"\nnot json\n",
        "nofield.jsonl": b'{"id": "a", "body": "one two three"}\n',
        "table.csv": b"id,text\n1,one two three four\n", "binary.dat": bytes(range(256)) * 10,
        "cut.jsonl.gz": gzip.compress(b'{"text": "one two three"}\n' * 1000)[:40],
        "list.json": b'[{"text": "a"}', "latin.txt": "caf\xe9 au lait".encode("latin-1"),
        "keyed.jsonl": b'{"key": "k", "fingerprint": "3c92d228661540d6"}\n',
        "bad.hex": b"zz\n", "doc.pdf": b"%PDF-1.4\n...", "file.sim": b"hello",
    }
    (place / "docs").mkdir()
    (place / "rows").mkdir()
    np.save(place / "rows/rows.npy", np.arange(5, dtype=np.uint64))
    np.save(place / "floats.npy", np.zeros(4))
    (place / "emptyfolder").mkdir()
    for name, data in files.items():
        (place / name).write_bytes(data)
    (place / "dangling.sim").symlink_to("nowhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for command in ("build pages.sim docs", "build wide.sim docs --bits 128"):
            assert CliRunner().invoke(program, shlex.split(command)).exit_code == 0
    with simindex.open(place / "numbers.sim", "n") as index:
        index.append(np.arange(10, dtype=np.uint64))
    for name in ("torn.sim", "cut.sim"):
        shutil.copytree(place / "pages.sim", place / name)
    (place / "torn.sim/catalog/data.mdb").unlink()
    os.truncate(place / "cut.sim/catalog/data.mdb", 100)
    return place


WITHOUT_SKIPPING = (
    "nofield.jsonl", "doc.pdf", "rows/rows.npy docs/fox.txt", "floats.npy",
    "table.csv --text-field nope",
)


@pytest.mark.parametrize("inputs", WITHOUT_SKIPPING)
def test_skipping_is_no_remedy_for_what_is_wrong_with_all_records(
    place: Path, monkeypatch: pytest.MonkeyPatch, inputs: str
) -> None:
    monkeypatch.chdir(place)
    result = CliRunner().invoke(program, ["build", "new.sim", *inputs.split()])
    assert result.exit_code == 4
    assert "max-errors" not in result.stderr


@pytest.mark.parametrize("command", ["build new.sim -", "query pages.sim -", "dedup"])
@pytest.mark.parametrize("given", ["plain text", "id,text\n1,one two three\n", "[1, 2]\nx\n"])
def test_other_formats_on_standard_input_are_answered_with_the_option(
    place: Path, monkeypatch: pytest.MonkeyPatch, command: str, given: str
) -> None:
    monkeypatch.chdir(place)
    result = CliRunner().invoke(program, shlex.split(command), input=given)
    assert result.exit_code == 4
    assert "-:1: not " in result.stderr
    assert "--format text takes it for one text, and --format csv for a table" in result.stderr


def test_a_bad_line_after_good_ones_of_standard_input_can_be_skipped(run: Run) -> None:
    told = run("dedup", input=json.dumps({"text": FOX}) + "\nnot json\n", code=4).stderr
    assert "-:2: not JSON" in told
    assert "--max-errors N skips up to N" in told
    told = run("dedup", input='{"text": "cut', code=4).stderr
    assert "--format" not in told


def contents(place: Path) -> dict[str, str]:
    """What each file holds, but for the locks."""
    return {
        str(path): sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in place.rglob("*") if path.name not in ("LOCK", "lock.mdb")
    }


@pytest.mark.parametrize(("command", "code", "words"), [
    pytest.param(command, code, words, id=command) for command, code, *words in MISTAKES
])
def test_a_mistake_is_answered_and_changes_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int, words: list[str]
) -> None:
    monkeypatch.chdir(place)
    before = contents(place)
    result = CliRunner().invoke(program, shlex.split(command), prog_name="simindex")
    answer = " ".join(result.stderr.split())
    assert result.exit_code == code, answer
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    for said in words:
        assert said in answer
    for library in ("mode '", "keys=", "ids=", "tuple", "Index.", "IndexOptions", "Traceback"):
        assert library not in answer
    assert contents(place) == before


def test_two_writers_are_told_apart(place: Path, run: Run) -> None:
    with simindex.open(place / "pages.sim", "w"):
        (place / "pages.sim" / "LOCK").write_text("process 7 on a\n")
        for command in ("compact", "tune"):
            told = run(command, place / "pages.sim", code=3).stderr
            assert "is locked by a writer: process 7 on a" in told
            assert "wait until it has finished" in told


def test_an_index_that_went_meanwhile_is_missed(run: Run, tmp_path: Path) -> None:
    run("build", "i.sim", "-", input=json.dumps({"text": FOX}))
    with simindex.open(tmp_path / "i.sim"):
        shutil.rmtree(tmp_path / "i.sim")
        assert "there is no index at" in run("stats", "i.sim", code=3).stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_what_may_not_be_read_or_written_is_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(FOX)
    (tmp_path / "a.txt").chmod(0)
    assert "a.txt: cannot be opened: Permission denied" in run(
        "build", "i.sim", "a.txt", code=4
    ).stderr
    (tmp_path / "b.txt").write_text(FOX)
    (tmp_path / "closed").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    told = run("build", "closed/i.sim", "b.txt", code=2).stderr
    assert "check the permissions of its folder" in told
