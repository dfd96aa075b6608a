"""`build` and `query`: documents in, their near-duplicates out."""

from __future__ import annotations

import gzip
import json
import random
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from siphash import key_id
from web_records import archived

import simindex

Run = Callable[..., Any]
WORDS = [f"word{number}" for number in range(500)]


def text(seed: int, words: int = 300) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def rows_of(path: str = "i.sim") -> int:
    with simindex.open(path, "r") as index:
        assert [finding for finding in index.check() if finding.severity == "error"] == []
        return len(index)


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    """A folder `docs` of 20 texts, of which the last is the first in other letters."""
    folder = tmp_path / "docs" / "sub"
    folder.mkdir(parents=True)
    texts = [text(seed) for seed in range(20)]
    texts[19] = texts[0].upper() + "!"
    for number, content in enumerate(texts):
        place = folder if number >= 10 else folder.parent
        (place / f"{number}.txt").write_text(content)
    return texts


def test_a_folder_is_indexed_and_found_again(run: Run, texts: list[str]) -> None:
    built = run("build", "i.sim", "docs")
    assert built.stdout == ""
    assert "20 documents" in built.stderr
    assert "holds 20 rows; near-duplicates: within 7 of 64 bits" in built.stderr
    found = run("query", "i.sim", "docs/0.txt", "docs/sub/15.txt")
    assert found.stdout.splitlines() == [
        "docs/0.txt\tdocs/0.txt\t0", "docs/0.txt\tdocs/sub/19.txt\t0",
        "docs/sub/15.txt\tdocs/sub/15.txt\t0",
    ]
    assert "2 of 2 queries have near-duplicates: 3 matches within 7 bits" in found.stderr
    assert "exact" in found.stderr


def id_of(line: str) -> int:
    with simindex.open("i.sim", "r") as index:
        return key_id(line.split("\t")[1], index.options.key_secret)


def test_json_gives_one_object_a_line(run: Run, texts: list[str], objects: Any) -> None:
    (summary,) = objects(run("build", "i.sim", "docs", "--json").stdout)
    assert summary["documents"] == summary["rows"] == 20
    assert summary["without_fingerprint"] == summary["bad_records"] == 0
    found = objects(run("query", "i.sim", "--text", texts[3], "--json").stdout)
    assert len(found) == 1
    assert found[0]["query"] == "text:1"
    assert found[0]["key"] == "docs/3.txt"
    assert found[0]["distance"] == 0
    assert found[0]["id"] == id_of("\tdocs/3.txt")


@pytest.mark.parametrize("h", [0, 3, 8, 20])
def test_query_agrees_with_brute_force(
    run: Run, objects: Any, write_jsonl: Callable[..., Path], h: int
) -> None:
    rng = random.Random(17)
    records = []
    for number in range(60):
        words = text(number // 6).split()
        for _ in range(number % 6 * 3):
            words[rng.randrange(len(words))] = rng.choice(WORDS)
        records.append({"id": f"k{number}", "text": " ".join(words)})
    stored, asked = write_jsonl("s.jsonl", records[::2]), write_jsonl("q.jsonl", records[1::2])
    run("build", "i.sim", stored, "--weighting", "sublinear")
    result = run("query", "i.sim", asked, "-d", h, "--json")
    recipe = simindex.Recipe()
    rows = [int(row) for row in recipe.batch([r["text"] for r in records]).fingerprints]
    expected = {
        (f"k{a}", f"k{b}", (rows[a] ^ rows[b]).bit_count())
        for a in range(1, 60, 2) for b in range(0, 60, 2)
        if (rows[a] ^ rows[b]).bit_count() <= h
    }  # fmt: skip
    found = [(o["query"], o["key"], o["distance"]) for o in objects(result.stdout)]
    assert set(found) == expected
    assert len(found) == len(expected)
    first = run("query", "i.sim", asked, "-d", h, "--json", "--first")
    asked_once = [o["query"] for o in objects(first.stdout)]
    assert len(asked_once) == len(set(asked_once))
    assert set(asked_once) == {query for query, _, _ in expected}


def test_a_fingerprint_that_export_prints_can_be_looked_up(
    run: Run, texts: list[str], objects: Any
) -> None:
    run("build", "i.sim", "docs", "--bits", 128)
    row = next(row for row in objects(run("export", "i.sim").stdout) if row["key"] == "docs/7.txt")
    assert len(row["fingerprint"]) == 32
    found = run("query", "i.sim", "--fingerprint", row["fingerprint"], "-d", 0)
    assert found.stdout == f"{row['fingerprint']}\tdocs/7.txt\t0\n"
    run("query", "i.sim", "--fingerprint", row["fingerprint"][:16], code=2)
    run("query", "i.sim", "--fingerprint", "abc", code=2)


def test_texts_without_fingerprint_are_reported_and_never_matched(
    run: Run, write_jsonl: Callable[..., Path]
) -> None:
    empty = write_jsonl("e.jsonl", [{"id": n, "text": "" if n else text(1)} for n in range(9)])
    built = run("build", "i.sim", empty)
    assert "e.jsonl:2: no fingerprint: empty" in built.stderr
    assert "3 more documents without a fingerprint" in built.stderr
    assert rows_of() == 1
    found = run("query", "i.sim", empty)
    assert found.stdout == "0\t0\t0\n"
    looked_up = run("query", "i.sim", "--text", " ", code=1)
    assert looked_up.stdout == ""
    assert "nothing was looked up" in looked_up.stderr
    assert "text:1: no fingerprint: empty" in looked_up.stderr


def test_every_kind_of_input_gives_the_same_rows(
    run: Run, tmp_path: Path, write_jsonl: Callable[..., Path], objects: Any
) -> None:
    records = [{"name": f"n{n}", "body": text(n)} for n in range(5)]
    plain = write_jsonl("a.jsonl", records)
    data = plain.read_bytes()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "a.csv").write_text("name,body\n" + "".join(f"n{n},{text(n)}\n" for n in range(5)))
    fields = ("--text-field", "body", "--id-field", "name")
    (tmp_path / "secret").write_text("0" * 32)  # one for all, so that ids are equal, too
    secret = ("--key-secret", "secret")
    for number, name in enumerate(["a.jsonl", "a.jsonl.gz", "a.csv"]):
        run("build", f"{number}.sim", name, *fields, *secret)
    run("build", "3.sim", "-", *fields, *secret, input=data)
    exported = [
        sorted(run("export", f"{number}.sim").stdout.splitlines()) for number in range(4)
    ]
    assert len(exported[0]) == 5
    assert exported[0] == exported[1] == exported[2] == exported[3]
    assert {row["key"] for row in objects("\n".join(exported[0]))} == {f"n{n}" for n in range(5)}


def test_append_adds_by_the_stored_recipe(run: Run, texts: list[str]) -> None:
    run("build", "i.sim", "docs/sub", "--ngram", "1,2", "--unit", "char", "--weighting", "binary")
    run("build", "i.sim", "docs/1.txt", "--append")
    assert rows_of() == 11
    with simindex.open("i.sim", "r") as index:
        assert index.recipe == simindex.Recipe(unit="char", ngram=(1, 2), weighting="binary")
    assert "docs/1.txt\t0\n" in run("query", "i.sim", "docs/1.txt").stdout
    run("build", "i.sim", "docs/2.txt", "--append", "--bits", 128, code=2)
    run("build", "i.sim", "docs/2.txt", "--append", "--overwrite", code=2)
    assert rows_of() == 11


def test_append_makes_an_index_that_is_missing(run: Run, texts: list[str]) -> None:
    run("build", "i.sim", "docs/sub", "--append", "--unit", "char", "--batch-rows", 64)
    with simindex.open("i.sim") as index:
        assert index.recipe is not None and index.recipe.unit == "char"
        assert index.options.batch_rows == 64
    refused = run("build", "i.sim", "docs", "--append", "--unit", "word", code=2).stderr
    assert "it has --unit char: leave out --unit word, or build another index" in refused
    assert rows_of() == 10
    run("build", "i.sim", "docs/sub", "--append", "--unit", "char", "--batch-rows", 64)
    assert rows_of() == 10
    run("build", "i.sim", "docs", "--append")
    assert rows_of() == 20


def test_an_index_is_kept_unless_overwriting_is_asked(run: Run, texts: list[str]) -> None:
    run("build", "i.sim", "docs")
    refused = run("build", "i.sim", "docs/1.txt", code=3)
    assert "--append" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert rows_of() == 20
    run("build", "i.sim", "docs/1.txt", "--overwrite")
    assert rows_of() == 1


def test_overwriting_keeps_the_old_index_until_the_new_one_is_whole(
    run: Run, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.cli.contents.Texts.most", 2)
    run("build", "i.sim", "docs")
    lines = [f'{{"text": "{text(n)}"}}' for n in range(7)]
    (tmp_path / "bad.jsonl").write_text("\n".join([*lines, "oops"]))
    before = sorted(tmp_path.iterdir())
    for options in [(), ("--commit-every", 1)]:
        refused = run("build", "i.sim", "bad.jsonl", "--overwrite", *options, code=4)
        assert "i.sim is as it was" in refused.stderr
        assert rows_of() == 20
    with simindex.open("i.sim", "w"):
        run("build", "i.sim", "docs/1.txt", "--overwrite", code=3)
    for file in (tmp_path / "i.sim" / "catalog").iterdir():
        file.write_bytes(b"damaged")
    run("query", "i.sim", "docs", code=3)
    run("build", "i.sim", "docs/1.txt", "--overwrite", "--bits", 128)
    assert rows_of() == 1
    assert sorted(tmp_path.iterdir()) == before
    run("build", "fresh.sim", "docs", "--overwrite")
    assert rows_of("fresh.sim") == 20


def test_tfidf_learns_from_the_inputs_in_a_first_pass(
    run: Run, texts: list[str], objects: Any
) -> None:
    run("build", "i.sim", "docs", "--weighting", "tfidf", "--ngram", "1")
    recipe = simindex.Recipe(weighting="tfidf", ngram=1).fit(texts)
    expected = int(recipe.fingerprint(texts[4]).fingerprints[0])
    exported = {row["key"]: row for row in objects(run("export", "i.sim").stdout)}
    assert int(exported["docs/4.txt"]["fingerprint"], 16) == expected


def test_tfidf_reports_a_bad_record_once(run: Run, tmp_path: Path) -> None:
    lines = [f'{{"text": "{text(n)}"}}' for n in range(3)] + ["oops"]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    built = run("build", "i.sim", "a.jsonl", "--weighting", "tfidf", "--max-errors", 1)
    assert built.stderr.count("a.jsonl:4: not JSON") == 1
    assert "skipped 1 bad record" in built.stderr
    run("build", "j.sim", "a.jsonl", "--weighting", "tfidf", code=4)
    assert not (tmp_path / "j.sim").exists()


def test_the_index_itself_is_not_indexed(run: Run, texts: list[str]) -> None:
    run("build", "docs/i.sim", "docs")
    run("build", "docs/i.sim", "docs", "--append")
    assert rows_of("docs/i.sim") == 20


def test_bad_records_are_counted_and_skipped_up_to_a_limit(run: Run, tmp_path: Path) -> None:
    good = f'{{"text": "{text(1)}"}}'
    (tmp_path / "a.jsonl").write_bytes(f"{good}\nx\n{good}\n".encode() + b'"\xff"\n{}\n')
    refused = run("build", "i.sim", "a.jsonl", "--max-errors", 2, code=4)
    assert refused.stderr.splitlines()[0] == "simindex: a.jsonl:2: not JSON: Expecting value: " \
        "column 1"
    assert "a.jsonl:4: not UTF-8" in refused.stderr
    assert "a.jsonl:5: has no field 'text'" in refused.stderr.splitlines()[-1]
    assert "(bad record 3)" in refused.stderr
    assert not (tmp_path / "i.sim").exists()
    run("build", "i.sim", "a.jsonl", "--max-errors", 3)
    assert rows_of() == 2
    assert "a.jsonl:2" in run("query", "i.sim", "a.jsonl", code=4).stderr
    assert len(run("query", "i.sim", "a.jsonl", "--max-errors", 3).stdout.splitlines()) == 4


def test_bad_input_leaves_an_index_as_it_was(
    run: Run, texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.cli.contents.Texts.most", 2)
    run("build", "i.sim", "docs")
    lines = [f'{{"text": "{text(n)}"}}' for n in range(7)]
    (tmp_path / "bad.jsonl").write_text("\n".join([*lines, "oops"]))
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode())[:-4])
    for bad in ["bad.jsonl", "cut.jsonl.gz"]:
        refused = run("build", "i.sim", bad, "--append", code=4)
        assert f"{bad}" in refused.stderr
        assert "i.sim is as it was" in refused.stderr
        assert rows_of() == 20
        refused = run("build", "new.sim", bad, code=4)
        assert "new.sim was not created" in refused.stderr
        assert not (tmp_path / "new.sim").exists()


def test_commits_in_between_survive_bad_input(run: Run, tmp_path: Path) -> None:
    lines = [f'{{"text": "{text(n)}"}}' for n in range(7)]
    (tmp_path / "bad.jsonl").write_text("\n".join([*lines, "oops"]))
    options = ("--commit-every", 3, "--weighting", "tf")  # else a first pass finds what is bad
    refused = run("build", "i.sim", "bad.jsonl", *options, code=4)
    assert "6 documents of this run are committed" in refused.stderr
    assert rows_of() == 6


def test_problems_have_their_exit_codes(run: Run, texts: list[str], tmp_path: Path) -> None:
    assert "nowhere" in run("query", "nowhere", "--text", "x", code=3).stderr
    assert "nofile: no such file" in run("build", "i.sim", "nofile", code=4).stderr
    assert not (tmp_path / "i.sim").exists()
    run("build", "i.sim", code=2)
    run("build", "i.sim", "docs", "--ngram", "x", code=2)
    run("build", "i.sim", "docs", "--bits", "65", code=2)
    run("build", "i.sim", "docs", "--batch-rows", "0", code=2)
    assert not (tmp_path / "i.sim").exists()
    run("build", "i.sim", "docs")
    run("query", "i.sim", code=2)
    for h in ["-1", "65"]:
        assert "--distance" in run("query", "i.sim", "docs", "-d", h, code=2).stderr
    run("query", "i.sim", "docs", "--recall", "0", code=2)
    run("query", "i.sim", "docs", "--method", "guess", code=2)
    with simindex.open("i.sim", "w"):
        run("build", "i.sim", "docs", "--append", code=3)
        run("query", "i.sim", "docs")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").write_text("x")
    run("build", "other", "docs", code=3)
    run("build", "other", "docs", "--overwrite", code=3)
    assert (tmp_path / "other" / "precious").read_text() == "x"


def test_an_index_without_a_recipe_takes_only_fingerprints(
    run: Run, texts: list[str], tmp_path: Path
) -> None:
    import numpy as np

    with simindex.open("i.sim", "n") as index:
        index.append(np.array([5, 2**64 - 1], dtype=np.uint64), ids=[10, 11])
    assert "no recipe" in run("query", "i.sim", "--text", "x", code=2).stderr
    assert "no recipe" in run("build", "i.sim", "docs", "--append", code=2).stderr
    found = run("query", "i.sim", "--fingerprint", "0x0000_0000_0000_0004", "-d", 1)
    assert found.stdout == "0000000000000004\t10\t1\n"


def test_keys_that_would_break_a_table_are_escaped(
    run: Run, write_jsonl: Callable[..., Path], objects: Any
) -> None:
    path = write_jsonl("a.jsonl", [{"id": "a\tb\nc\\d é", "text": text(1)}])
    run("build", "i.sim", path)
    assert run("query", "i.sim", path).stdout == "a\\tb\\nc\\\\d é\ta\\tb\\nc\\\\d é\t0\n"
    assert objects(run("query", "i.sim", path, "--json").stdout)[0]["key"] == "a\tb\nc\\d é"


def test_quiet_says_nothing_but_problems(run: Run, texts: list[str], tmp_path: Path) -> None:
    assert run("build", "i.sim", "docs", "-q").stderr == ""
    assert run("query", "i.sim", "docs", "-q").stderr == ""
    (tmp_path / "empty").write_text("")
    assert "no fingerprint" in run("query", "i.sim", "empty", "-q", code=1).stderr


# Names --------------------------------------------------------------------------------------------


def test_mirrors_in_two_folders_are_found(run: Run, tmp_path: Path) -> None:
    for site in ("siteA", "siteB"):
        (tmp_path / site).mkdir()
        (tmp_path / site / "index.html").write_text(text(1))
    run("build", "i.sim", "siteA", "siteB")
    assert run("pairs", "i.sim").stdout == "siteA/index.html\tsiteB/index.html\t0\n" or (
        run("pairs", "i.sim").stdout == "siteB/index.html\tsiteA/index.html\t0\n"
    )


def test_a_record_without_an_id_that_is_piped_twice_is_two_documents(run: Run) -> None:
    line = json.dumps({"text": text(1)}) + "\n"
    run("build", "i.sim", "-", input=line)
    told = run("build", "i.sim", "-", "--append", input=line).stderr
    assert told.count("1 record without an id (looked for id, key, ") == 1
    (pair,) = run("pairs", "i.sim").stdout.splitlines()
    assert re.fullmatch(r"(stdin-\d{8}T\d{6}-[0-9a-f]{4}:1\t){2}0", pair)
    assert pair.split("\t")[0] != pair.split("\t")[1]


def test_the_field_that_gave_ids_is_told_where_it_was_not_asked_for(run: Run) -> None:
    line = json.dumps({"url": "u", "text": text(1)}) + "\n"
    assert "ids are those of the field 'url'" in run("build", "i.sim", "-", input=line).stderr
    told = run("build", "j.sim", "-", "--id-field", "url", input=line).stderr
    assert "ids are" not in told and "without an id" not in told
    told = run("build", "k.sim", "-", "--id-field", "name", input=line, code=4).stderr
    assert "has no field 'name'; k.sim was not created: name another field with --id-field" in told
    assert "(this document has 'url', 'text')" in told
    lines = line + json.dumps({"name": "n", "text": text(2)}) + "\n"
    told = run("build", "k.sim", "-", "--id-field", "name", input=lines).stderr
    assert "1 record without an id (looked for name)" in told


def test_ids_that_repeat_are_told_of(run: Run, objects: Any) -> None:
    """They make one document of several, whose copies are no near-duplicates then."""
    given = [("a", 1), ("a", 2), ("b", 1), ("c", 3), ("c", 3), ("c", 3)]
    lines = "".join(json.dumps({"id": key, "text": text(words)}) + "\n" for key, words in given)
    told = run("build", "i.sim", "-", input=lines).stderr
    assert "3 documents have the id of an earlier one, 1 of them with another text" in told
    assert "--id-field" in told
    (record,) = objects(run("build", "j.sim", "-", "--json", input=lines).stdout)
    assert record["repeated_ids"] == 3
    alone = run("build", "k.sim", "-", input=lines.splitlines()[0]).stderr
    assert "earlier one" not in alone


@pytest.mark.parametrize("content", ["", "!!! ...\n"])
def test_documents_without_a_fingerprint_make_no_index(
    run: Run, tmp_path: Path, objects: Any, content: str
) -> None:
    (tmp_path / "bare.txt").write_text(content)
    done = run("build", "i.sim", "bare.txt", "--json", code=1)
    assert objects(done.stdout)[0]["without_fingerprint"] == 1
    assert "no document with a fingerprint: i.sim was not created" in done.stderr
    assert not Path("i.sim").exists()
    (tmp_path / "good.txt").write_text(text(1))
    run("build", "i.sim", "good.txt")
    before = simindex.open("i.sim", "r").generation
    done = run("build", "i.sim", "bare.txt", "--overwrite", code=1)
    assert "i.sim is as it was" in done.stderr
    run("build", "i.sim", "bare.txt", "--append")
    with simindex.open("i.sim", "r") as index:
        assert (len(index), index.generation >= before) == (1, True)


def test_a_folder_that_is_named_twice_is_read_once(run: Run, texts: list[str]) -> None:
    told = run("build", "i.sim", "docs", "./docs").stderr
    assert rows_of() == len(texts)
    assert f"skipped {len(texts)} files: reached before" in told


def test_what_cannot_be_read_is_refused_and_nothing_is_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.pdf.gz").write_bytes(gzip.compress(b"%PDF-1.7\n%\xe2\xe3\n"))
    told = run("build", "i.sim", "a.pdf.gz", code=4).stderr
    assert "a.pdf.gz: a PDF file, which cannot be read; i.sim was not created" in told
    assert "not created: export its texts" in told
    assert not (tmp_path / "i.sim").exists()


def test_markup_that_is_kept_is_told_of(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f"<html><body>{text(1)}</body></html>")
    assert "markup" not in run("build", "i.sim", "a.html").stderr
    told = run("build", "j.sim", "a.html", "--html", "raw").stderr
    assert "1 HTML file read with the markup" in told and "leave out --html raw" in told


def test_records_of_archives_that_are_no_pages_are_told_of(run: Run, tmp_path: Path) -> None:
    records = [("response", 200, "text/html", f"<p>{text(1)}</p>"), ("response", 404, "", "gone")]
    records += [("request", 0, "", "GET /")] * 3
    (tmp_path / "a.warc").write_bytes(b"".join(archived(*record) for record in records))
    told = run("build", "i.sim", "a.warc").stderr
    assert "skipped 4 records of archives, without a page or text: 3 request, 1 status 404" in (
        told
    )
    assert "ids are those of the field 'WARC-Target-URI'" in told
    assert run("query", "i.sim", "a.warc").stdout.split("\t")[:2] == ["http://a/200"] * 2


# -- the radius -----------------------------------------------------------------------------------


@pytest.fixture
def spread(run: Run) -> str:
    """An index that stores a radius of 9, of ten rows 0 to 13 bits from the first."""
    with simindex.open("r.sim", "n", options=simindex.IndexOptions(
        keys="str", recipe=simindex.Recipe(h=9)
    )) as index:
        rows = np.array([(1 << bits) - 1 for bits in range(14)], np.uint64)
        index.append(rows, keys=[f"k{bits}" for bits in range(14)])
    return "r.sim"


def test_every_command_uses_the_radius_of_the_index(run: Run, spread: str, objects: Any) -> None:
    nought = ("--fingerprint", "0" * 16)
    for h, given in ((9, ()), (4, ("-d", 4))):
        found = run("query", spread, *nought, *given)
        assert len(found.stdout.splitlines()) == h + 1
        assert f"{h + 1} matches within {h} bits, " in found.stderr
        pairs = run("pairs", spread, *given)
        assert len(pairs.stdout.splitlines()) == sum(min(h, 13 - row) for row in range(14))
        assert f" within {h} bits among 14 rows" in pairs.stderr
        assert f" within {h} bits;" in run("clusters", spread, *given).stderr
        explained = run("explain", spread, *nought, *given)
        assert f"documents within {h} bits\n" in explained.stdout
        (answer,) = objects(run("explain", spread, *nought, *given, "--json").stdout)
        assert answer["h"] == h
    for h, given in ((9, ()), (4, ("-d", 4))):
        told = run("dedup", "--index", spread, *given, input='{"text": "ab cd ef gh"}').stderr
        assert f" within {h} bits of a kept one" in told
    assert "near-duplicates are within 9 bits" in run("stats", spread).stdout
    (held,) = objects(run("stats", spread, "--json").stdout)
    assert (held["h"], held["recipe"]["h"]) == (9, 9)


def test_build_stores_and_prints_the_radius(run: Run, texts: list[str], objects: Any) -> None:
    for given, h in (((), 7), (("--bits", 256), 28), (("--weighting", "tf", "--ngram", 1), 3),
                     (("-d", 0), 0), (("-d", 10), 10)):
        told = run("build", "i.sim", "docs", "--overwrite", *given)
        assert f"near-duplicates: within {h} of " in told.stderr
        (record,) = objects(run("build", "i.sim", "docs", "--overwrite", *given, "--json").stdout)
        assert record["h"] == h
        with simindex.open("i.sim", "r") as index:
            assert index.h == h
    (record,) = objects(run("build", "i.sim", "docs", "--append", "--json").stdout)
    assert record["h"] == 10
    refused = run("build", "i.sim", "docs", "--append", "-d", 3, code=2).stderr
    assert "it has -d 10: leave out -d 3" in refused
    refused = run("build", "j.sim", "docs", "-d", 65, code=2).stderr
    assert "--distance 65 is not valid: give a whole number from 0 to 64" in refused


def test_an_index_without_a_recipe_has_the_radius_of_raw_fingerprints(run: Run) -> None:
    for bits, h in ((64, 3), (256, 12)):
        with simindex.open("raw.sim", "n", options=simindex.IndexOptions(bits=bits)) as index:
            index.append(np.zeros((2, bits // 64), np.uint64))
        assert f"1 pair within {h} bits among" in run("pairs", "raw.sim").stderr
        shutil.rmtree("raw.sim")


def test_dedup_uses_the_radius_of_its_recipe_and_stores_the_one_that_is_given(run: Run) -> None:
    line = '{"id": "a", "text": "one two three four five six"}'
    for given, h in (((), 7), (("--bits", 128), 14), (("--bits", 128, "-d", 5), 5)):
        for place in ((), ("--index", f"{h}.sim")):
            assert f" within {h} bits of a" in run("dedup", *given, *place, input=line).stderr
        summary = run("dedup", *given, "--json", input=line).stderr
        assert json.loads(summary)["h"] == h
        assert f"within {h} bits" in run("stats", f"{h}.sim").stdout
    assert " within 2 bits of" in run("dedup", "--index", "5.sim", "-d", 2, input=line).stderr
    assert "within 5 bits" in run("stats", "5.sim").stdout


@pytest.mark.slow
def test_plan_takes_the_radius_of_the_recipe_that_build_uses(run: Run, objects: Any) -> None:
    for bits, h in ((64, 7), (256, 28)):
        told = run("plan", "--rows", "1M", "--bits", bits)
        assert f"within {h} of {bits} bits" in told.stderr
        assert objects(run("plan", "--rows", "1M", "--bits", bits, "--json").stdout)[0]["h"] == h
        assert told.stdout == run("plan", "--rows", "1M", "--bits", bits, "-d", h).stdout


@pytest.mark.parametrize("command", ["query", "pairs", "clusters", "dedup", "tune", "explain"])
def test_help_says_where_the_radius_comes_from(run: Run, command: str) -> None:
    said = " ".join(run(command, "-h").stdout.split())
    default = "the stored radius, which `simindex stats` shows"
    if command == "dedup":  # it needs no index
        default = "that of the recipe, or of an existing --index"
    assert f"may differ. Default: {default}." in said


@pytest.mark.parametrize("options", [(), ("--top", 4), ("--json",)], ids=str)
def test_matches_of_one_distance_are_in_the_order_of_their_keys(
    run: Run, options: tuple[object, ...]
) -> None:
    """Ids of keys are drawn, so their order is another in each index."""
    for _ in range(3):
        keyed = simindex.IndexOptions(keys="str")
        with simindex.open("i.sim", "n", options=keyed, overwrite=True) as index:
            index.append(np.zeros(4, np.uint64), keys=["d", "b", "a", "c"])
        lines = run("query", "i.sim", "--fingerprint", "0" * 16, *options).stdout.splitlines()
        keys = [
            json.loads(line)["key"] if "--json" in options else line.split("\t")[1]
            for line in lines
        ]
        assert keys == ["a", "b", "c", "d"]


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_a_full_disk_is_told_with_what_is_left(
    run: Run, spawn: Callable[..., Any], texts: list[str], options: list[str]
) -> None:
    """No index is said to have its last commit where there is none."""
    if options:
        run("build", "i.sim", "docs")
    limit = (50_000, 50_000)  # bytes of a file, less than a catalog takes
    full = spawn(
        "build", "i.sim", "docs", *options,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    _, told = full.communicate(timeout=60)
    assert full.returncode == 3
    assert b"no space left while writing" in told
    assert (b"; i.sim was not created: free some" in told) is not bool(options)
    assert (b"i.sim is as it was: free some space and repeat the call\n" in told) is bool(options)
    assert b"last commit" not in told
    assert Path("i.sim").exists() is bool(options)
