"""`dedup`: greedy by rank, byte for byte, whatever the buffers."""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from web_records import archived

import simindex
from simindex.cli import program
from simindex.cli.dedup import run as dedup_run
from simindex.inputs import json_lines, line_columns

Run = Callable[..., Any]
WORDS = [f"word{number}" for number in range(300)]

PLAIN = ("--weighting", "sublinear")
"""What `simindex.Recipe()` is in the shell, which learns idf from 30 documents on."""


def corpus(n: int) -> list[str]:
    """Texts of which many are edited copies of earlier ones."""
    rng = random.Random(23)
    texts: list[str] = []
    for _ in range(n):
        if texts and rng.random() < 0.6:
            words = rng.choice(texts).split()
            for _ in range(rng.randrange(6)):
                words[rng.randrange(len(words))] = rng.choice(WORDS)
        else:
            words = rng.choices(WORDS, k=200)
        texts.append(" ".join(words))
    return texts


def kept_by_brute_force(
    texts: list[str], h: int, recipe: simindex.Recipe | None = None
) -> list[int]:
    rows = [int(row) for row in (recipe or simindex.Recipe()).batch(texts).fingerprints]
    kept: list[int] = []
    for number, row in enumerate(rows):
        if all((row ^ rows[earlier]).bit_count() > h for earlier in kept):
            kept.append(number)
    return kept


@pytest.mark.parametrize("h", [0, 3, 10])
@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_what_is_kept_does_not_depend_on_the_chunks(
    run: Run, h: int, chunk: int
) -> None:
    texts = corpus(80)
    lines = [json.dumps({"id": n, "text": text}) for n, text in enumerate(texts)]
    options = ("-d", h, "--buffer", chunk, "--audit", "r.jsonl")
    result = run("dedup", *PLAIN, *options, input="\n".join(lines))
    kept = kept_by_brute_force(texts, h)
    assert 5 < len(kept) < 80
    assert result.stdout.splitlines() == [lines[number] for number in kept]
    assert f"kept {len(kept)} of 80 documents, dropped {80 - len(kept)} within {h}" in result.stderr
    dropped = [json.loads(line) for line in Path("r.jsonl").read_text().splitlines()]
    rows = [int(row) for row in simindex.Recipe().batch(texts).fingerprints]
    assert [int(record["dropped"]) for record in dropped] == sorted(set(range(80)) - set(kept))
    for record in dropped:
        gone, stays = int(record["dropped"]), int(record["lost_to"])
        assert stays in kept
        assert stays < gone
        distance = (rows[gone] ^ rows[stays]).bit_count()
        assert record["distance"] == distance <= h


def test_lines_come_out_byte_for_byte(run: Run) -> None:
    texts = corpus(3)
    one = '{ "text" :"%s",  "x": 1.0,"é":"\\u00e9" }\r\n' % texts[0]  # noqa: UP031
    two = json.dumps({"text": texts[0].upper()}) + "\n"
    three = json.dumps({"text": " ".join(WORDS)})
    data = b"\xef\xbb\xbf" + one.encode() + two.encode() + b"\n" + three.encode()
    result = run("dedup", input=data)
    assert result.stdout_bytes == one.encode() + three.encode() + b"\n"


def test_documents_without_fingerprint_are_kept_in_place(run: Run) -> None:
    lines = ['{"text": ""}', '{"text": "a b c"}', '{"text": "!"}', '{"text": "A, b; C."}']
    result = run("dedup", input="\n".join(lines))
    assert result.stdout.splitlines() == lines[:3]
    assert "-:1: no fingerprint: empty" in result.stderr


def test_other_inputs_come_out_as_json_lines(run: Run, tmp_path: Path, objects: Any) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.txt").write_text("one two three four")
    (tmp_path / "d" / "b.txt").write_text("One, two, three, four!")
    (tmp_path / "t.csv").write_text("id,text,n\n1,five six seven eight,x\n2,one two three four,y\n")
    result = run("dedup", "d", "t.csv")
    assert objects(result.stdout) == [
        {"id": "d/a.txt", "text": "one two three four"},
        {"id": "1", "text": "five six seven eight", "n": "x"},
    ]


def test_rows_of_parquet_come_out_with_all_their_columns(run: Run, objects: Any) -> None:
    moment = datetime(2026, 11, 26, tzinfo=UTC)
    texts = [corpus(1)[0], " ".join(WORDS), corpus(1)[0]]
    table = pa.table({
        "id": [7, 8, 9], "body": [{"text": one} for one in texts], "raw": [b"\xff"] * 3,
        "time": [moment] * 3,
    })
    parquet.write_table(table, "a.parquet")
    kept = objects(run("dedup", "a.parquet", "--text-field", "body.text").stdout)
    assert kept == [
        {"id": number, "body": {"text": texts[at]}, "raw": "ff", "time": moment.isoformat()}
        for at, number in enumerate((7, 8))
    ]


def test_pages_of_archives_come_out_with_their_texts(run: Run, objects: Any) -> None:
    Path("a.warc").write_bytes(
        archived("response", 200, "text/plain", corpus(1)[0])
        + archived("response", 201, "text/plain", corpus(1)[0])
    )
    (kept,) = objects(run("dedup", "a.warc").stdout)
    assert (kept["id"], kept["text"]) == ("http://a/200", corpus(1)[0])
    assert kept["WARC-Type"] == "response"


def test_bad_records_stop_or_are_left_out(run: Run) -> None:
    lines = '{"text": "a b c"}\noops\n{"text": "d e f"}\n'
    assert "-:2: not JSON" in run("dedup", input=lines, code=4).stderr
    result = run("dedup", "--max-errors", 1, "--json", input=lines)
    assert result.stdout == '{"text": "a b c"}\n{"text": "d e f"}\n'
    summary = json.loads(result.stderr.splitlines()[-1])
    assert summary["kept"] == summary["documents"] == 2
    assert summary["bad_records"] == 1


def test_the_temporary_index_is_removed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    run("dedup", "--temp-dir", "t", input='{"text": "a b c"}\n')
    run("dedup", "--temp-dir", "t", input="oops\n", code=4)
    assert list((tmp_path / "t").iterdir()) == []


def test_folders_that_cannot_be_written_are_named(run: Run) -> None:
    assert "--temp-dir" in run("dedup", "--temp-dir", "no/where", input="", code=2).stderr
    assert "--audit no/r" in run("dedup", "--audit", "no/r", input="", code=2).stderr


def test_recipe_and_empty_input(run: Run) -> None:
    assert run("dedup", input="").stdout == ""
    lines = '{"text": "ab cd"}\n{"text": "abcd"}\n'
    assert len(run("dedup", input=lines).stdout.splitlines()) == 2
    Path("a.jsonl").write_text(lines)
    run("dedup", "a.jsonl", "--weighting", "tfidf", "--bits", 128, "--unit", "char")
    said = run("dedup", "--weighting", "tfidf", input="", code=2).stderr
    assert "--weighting tfidf learns from documents, and the inputs hold none" in said


IDF = ("--weighting", "tfidf", "--ngram", "1")


@pytest.mark.parametrize(
    ("options", "learned", "said"),
    [
        ((), 80, "80 documents, all of the stream"),
        (("--idf-first", 7), 7, "the first 7 documents of the stream"),
    ],
)
def test_a_stream_is_deduplicated_by_the_idf_of_its_first_documents(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[Any, ...], learned: int, said: str
) -> None:
    """Those that were held come out byte for byte, too."""
    texts = corpus(80)
    lines = [json.dumps({"id": n, "x": [n], "text": text}) + " " for n, text in enumerate(texts)]
    result = run("dedup", *IDF, *options, input="\n".join(lines))
    recipe = simindex.Recipe(weighting="tfidf", ngram=1).fit(texts[:learned])
    kept = kept_by_brute_force(texts, 7, recipe)  # the recipe's radius
    assert kept != kept_by_brute_force(texts, 7)
    assert kept != kept_by_brute_force(texts, 3, recipe)
    assert result.stdout.splitlines() == [lines[number] for number in kept]
    assert f"word weights learned from {said}\n" in result.stderr
    summary = run("dedup", *IDF, *options, "--json", input="\n".join(lines)).stderr
    assert json.loads(summary)["idf"] == {"documents": learned, "first": learned}


def test_files_are_deduplicated_by_the_idf_of_a_sample(run: Run, objects: Any) -> None:
    texts = corpus(40)
    table = "id,text,n\n" + "".join(f"k{n},{text},{n}\n" for n, text in enumerate(texts))
    Path("a.csv").write_text(table)
    recipe = simindex.Recipe(weighting="tfidf", ngram=1)
    for options, learned in ((("--idf-sample", 1), 40), (("--idf-first", 3), 3)):
        kept = kept_by_brute_force(texts, 3, recipe.fit(texts[:learned]))
        result = run("dedup", "a.csv", *IDF, *options, "-d", 3)
        assert objects(result.stdout) == [
            {"id": f"k{n}", "text": texts[n], "n": str(n)} for n in kept
        ]
    result = run("dedup", "-", *IDF, "--idf-sample", 1, input="", code=2)
    assert "--idf-sample reads the inputs twice" in result.stderr


def test_what_a_stream_holds_counts_whole_lines(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simindex.cli.learned_idf.MOST_HELD_BYTES", 10_000)
    lines = [json.dumps({"text": f"w{n}", "other": "x" * 2000}) for n in range(9)]
    result = run("dedup", *IDF, input="\n".join(lines))
    assert result.stdout.splitlines() == lines
    assert "word weights learned from the first 5 documents of the stream" in result.stderr


POOL = [*corpus(14), ""]
ROWS = [
    int(batch.fingerprints[0]) if len(batch) else None
    for batch in map(simindex.Recipe().fingerprint, POOL)
]


def apart(a: int | None, b: int | None) -> int:
    assert a is not None
    assert b is not None
    return (a ^ b).bit_count()


def losses_by_brute_force(
    drawn: list[tuple[int, int]], policy: str, h: int, buffer: int
) -> dict[int, dict[int, int]]:
    """Of each document that is dropped, what it may have lost to, with the distances.

    That is the nearest; with none, any within h.
    """
    stored: list[int] = []
    lost: dict[int, dict[int, int]] = {}
    for start in range(0, len(drawn), buffer):
        some = [n for n in range(start, min(start + buffer, len(drawn))) if ROWS[drawn[n][0]]]
        rank: Callable[[int], Any] = {
            "first": lambda n: n,
            "longest": lambda n: (-len(POOL[drawn[n][0]]), n),
            "highest:n": lambda n: (-drawn[n][1], n),
            "none": lambda n: n,
        }[policy]
        kept: list[int] = []
        for n in sorted(some, key=rank):
            others = [*stored, *(kept if policy != "none" else set(some) - {n})]
            near = {m: apart(ROWS[drawn[n][0]], ROWS[drawn[m][0]]) for m in others}
            distance = min(near.values(), default=65)
            if distance <= h:
                most = h if policy == "none" else distance
                lost[n] = {m: near[m] for m in near if near[m] <= most}
            else:
                kept.append(n)
        stored += some if policy == "none" else kept
    return lost


@given(
    st.lists(st.tuples(st.integers(0, len(POOL) - 1), st.integers(0, 3)), max_size=12),
    st.sampled_from(["first", "longest", "highest:n", "none"]), st.sampled_from([0, 3, 12]),
    st.sampled_from([1, 2, 5, 100]), st.booleans(),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.slow
def test_policies_keep_what_a_comparison_of_all_keeps(
    drawn: list[tuple[int, int]], policy: str, h: int, buffer: int, lasting: bool
) -> None:
    lines = [
        json.dumps({"id": str(number), "n": n, "text": POOL[place]})
        for number, (place, n) in enumerate(drawn)
    ]
    expected = losses_by_brute_force(drawn, policy, h, buffer)
    with tempfile.TemporaryDirectory() as folder:
        options = [
            *PLAIN, "-d", str(h), "--keep", policy, "--buffer", str(buffer),
            "--audit", f"{folder}/audit",
            *(["--index", f"{folder}/i.sim"] if lasting else []),
        ]
        result = CliRunner().invoke(program, ["dedup", *options], input="\n".join(lines))
        assert result.exit_code == 0, result.stderr
        audit = [json.loads(one) for one in Path(folder, "audit").read_text().splitlines()]
    assert result.stdout.splitlines() == [
        line for number, line in enumerate(lines) if number not in expected
    ]
    assert [int(one["dropped"]) for one in audit] == sorted(expected)
    for one in audit:
        assert one["distance"] == expected[int(one["dropped"])][int(one["lost_to"])]


@pytest.mark.parametrize("buffer", [1, 13, 4096])
def test_marks_do_not_depend_on_the_buffers(run: Run, buffer: int) -> None:
    """Which of several at the nearest distance is named may."""
    texts = corpus(80)
    lines = [json.dumps({"id": n, "text": text}) for n, text in enumerate(texts)]
    options = ("-d", 10, "--mark", "--buffer", buffer)
    drawn = run("dedup", *PLAIN, *options, input="\n".join(lines))
    kept = kept_by_brute_force(texts, 10)
    rows = [int(row) for row in simindex.Recipe().batch(texts).fingerprints]
    assert "marked" in drawn.stderr
    for number, line in enumerate(drawn.stdout.splitlines()):
        mark = json.loads(line)["near_duplicate_of"]
        nearest = min(
            ((rows[number] ^ rows[other]).bit_count() for other in kept if other < number),
            default=65,
        )
        if number in kept:
            assert mark is None
            assert nearest > 10
        else:
            assert mark["distance"] == nearest
            assert (rows[number] ^ rows[int(mark["key"])]).bit_count() == nearest
        assert line.startswith(lines[number][:-1] + ', "near_duplicate_of": ')


def test_a_mark_is_spliced_into_the_line(run: Run) -> None:
    one = '{ "text" :"a b c",  "x": 1.0,"é":"\\u00e9" }\r\n'
    two = '{"id":"q\\"","text":"A, b: C","n":1e400}  '
    three = '{"text":"\\ud83d","near_duplicate_of":7}'
    given = (one + two + "\n" + one).encode()
    result = run("dedup", "--mark", input=given, code=0)
    first = re.search(r"stdin-\d{8}T\d{6}-[0-9a-f]{4}:1", result.stdout)
    assert first is not None
    assert result.stdout_bytes.decode().replace(first[0], "-:1").split("\n") == [
        '{ "text" :"a b c",  "x": 1.0,"é":"\\u00e9" , "near_duplicate_of": null}\r',
        '{"id":"q\\"","text":"A, b: C","n":1e400, "near_duplicate_of": '
        '{"key": "-:1", "distance": 0}}  ',
        '{ "text" :"a b c",  "x": 1.0,"é":"\\u00e9" , "near_duplicate_of": '
        '{"key": "-:1", "distance": 0}}\r',
        "",
    ]
    assert "marked 2 of 3 documents as within 7 bits of a kept one" in result.stderr
    run("dedup", "--mark", input=three, code=4)


def test_a_mark_of_before_is_replaced(run: Run) -> None:
    given = (
        '{"near_duplicate_of": {"key": "z"}, "text": "a b c", "o": "\\ud83d"}\n'
        '{"id": 1, "text": "a b c near_duplicate_of"}\n'
    )
    marked = run("dedup", "--mark", "-d", 3, input=given).stdout.splitlines()
    assert marked == [
        '{"near_duplicate_of": null, "text": "a b c", "o": "\\ud83d"}',
        '{"id": 1, "text": "a b c near_duplicate_of", "near_duplicate_of": null}',
    ]
    again = run("dedup", "--mark", "-d", 3, input="\n".join(marked)).stdout.splitlines()
    assert again == marked


ODD_LINES = [
    '{"id": "m", "near_duplicate_of": {"key": "z"}, "text": "%s"}',
    '{"id": "w", "text": "near_duplicate_of %s"} ', '{"text": "no id %s"}', "",
    '{"id": 7, "text": "%s"}', '{"id": "e", "n": NaN, "text": "%s"}\r', '{"id": "s", "text": ""}',
]


@pytest.mark.parametrize(
    "options",
    [(), ("--mark",), ("--mark", "--index", "i"), ("--index", "i"), ("--keep", "none"),
     ("--keep", "longest", "--mark"), ("--keep", "longest", "--index", "i"), ("--buffer", 7)],
)
def test_columns_of_lines_do_not_show(
    run: Run, monkeypatch: pytest.MonkeyPatch, options: tuple[Any, ...]
) -> None:
    """Of a file lines come in columns where they are plain: output, audit and index are the same.

    The second run of each finds all in the index that it makes again.
    """
    lines = [json.dumps({"n": n, "id": f"d{n % 150}", "text": text}, ensure_ascii=n % 2 == 0)
             for n, text in enumerate(corpus(200))]
    for place, odd in enumerate(ODD_LINES):
        lines.insert(25 * place + 5, odd % corpus(1)[0] if "%s" in odd else odd)
    Path("t.jsonl").write_text("\n".join(lines))
    monkeypatch.setattr(json_lines, "BUFFER_BYTES", 1 << 12)
    seen: list[Any] = []
    for least in (1, 1 << 30):
        monkeypatch.setattr(line_columns, "LEAST_LINES", least)
        results = [
            run("dedup", "t.jsonl", "--audit", "a.jsonl", *options) for _ in range(2)
        ]
        said = [re.sub(r", in [^;]*", "", result.stderr) for result in results]
        rows = run("export", "i").stdout if "i" in options else ""
        seen.append(([result.stdout_bytes for result in results], said, rows,
                     Path("a.jsonl").read_bytes()))
        shutil.rmtree("i", ignore_errors=True)
        Path("a.jsonl").unlink()
    assert seen[0] == seen[1]
    assert seen[0][0][0].count(b"\n") > 20


def test_other_inputs_are_marked_as_json_lines(run: Run, objects: Any) -> None:
    Path("t.csv").write_text("id,text,n\n1,five six seven eight,x\n2,five six seven eight,y\n")
    Path("a.txt").write_text("one two three four")
    assert objects(run("dedup", "--mark", "t.csv", "a.txt").stdout) == [
        {"id": "1", "text": "five six seven eight", "n": "x", "near_duplicate_of": None},
        {"id": "2", "text": "five six seven eight", "n": "y",
         "near_duplicate_of": {"key": "1", "distance": 0}},
        {"id": "a.txt", "text": "one two three four", "near_duplicate_of": None},
    ]


def ranked(*values: Any) -> str:
    return "".join(
        json.dumps({"id": n, "rank": value, "text": "a b c"}) + "\n"
        for n, value in enumerate(values)
    )


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ((1, 3, 2), 1),
        ((2.5, 2, -3), 0),
        ((2**60, 2**60 + 1), 1),  # a float would not tell them apart
        ((7, 7.0, 7), 0),
        (("2024-03-01", "2023-12-31", "2024-03-02"), 2),
        (("9", "10"), 0),  # texts of JSON are compared as texts
    ],
)
def test_the_highest_is_kept(run: Run, objects: Any, values: tuple[Any, ...], kept: int) -> None:
    found = objects(run("dedup", "--keep", "highest:rank", input=ranked(*values)).stdout)
    assert [one["id"] for one in found] == [kept]


def test_numbers_of_a_table_are_numbers(run: Run, objects: Any) -> None:
    Path("t.csv").write_text("id,text,n\n1,a b c,9\n2,a b c,10\n3,a b c,9.5\n")
    assert [one["id"] for one in objects(run("dedup", "--keep", "highest:n", "t.csv").stdout)] == [
        "2"
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "field 'rank' is neither a number nor a text"),
        (True, "field 'rank' is neither a number nor a text"),
        ([1], "field 'rank' is neither a number nor a text"),
        (float("nan"), "field 'rank' is nan, which has no rank"),
        (float("inf"), "field 'rank' is inf, which has no rank"),
        ("", "field 'rank' is '', which has no rank"),
        ("x", "field 'rank' is text, after numbers before it"),
    ],
)
def test_a_document_without_rank_is_a_bad_record(run: Run, value: Any, said: str) -> None:
    given = ranked(1, value, 2)
    assert f"-:2: {said}" in run("dedup", "--keep", "highest:rank", input=given, code=4).stderr
    result = run("dedup", "--keep", "highest:rank", "--max-errors", 1, input=given)
    assert json.loads(result.stdout)["id"] == 2
    assert f"-:2: {said}" in result.stderr
    assert "skipped 1 bad record" in result.stderr


def test_ranks_are_asked_of_records_that_idf_was_learned_from(run: Run, objects: Any) -> None:
    given = ranked(1, 3, 2)
    for first in (1, 2, 10):
        options = ("--weighting", "tfidf", "--idf-first", first, "--keep", "highest:rank")
        assert objects(run("dedup", *options, input=given).stdout)[0]["id"] == 1
    Path("a.jsonl").write_text(ranked(1, "x", 2))
    result = run(
        "dedup", "a.jsonl", *IDF, "--keep", "highest:rank", "--max-errors", 1
    )
    assert result.stderr.count("a.jsonl:2: field 'rank' is text") == 1


def test_policies_that_are_none_are_refused(run: Run) -> None:
    for keep in ("last", "highest", "highest:", "first:x", ""):
        said = run("dedup", "--keep", keep, input="", code=2).stderr
        assert "is not a policy: give first, longest" in said
    Path("a.txt").write_text("a b c")
    said = run("dedup", "a.txt", "--keep", "highest:n", code=4).stderr
    assert "a text file has no field 'n' to rank it by" in said
    said = run("dedup", "--keep", "highest:n", input='{"text": "a"}', code=4).stderr
    assert "-:1: has no field 'n' to rank it by" in said


def test_buffers_end_at_many_characters(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the second copy, which is longer, comes too late."""
    given = "".join(
        json.dumps({"text": f"{n} {n}b {n}c" + " " * copy}) + "\n"
        for n in range(3) for copy in (0, 5)
    )
    kept = run("dedup", "--keep", "longest", input=given).stdout
    assert kept.splitlines() == given.splitlines()[1::2]
    monkeypatch.setattr(dedup_run, "BUFFER_BYTES", 5)
    kept = run("dedup", "--keep", "longest", "--buffer", 100, input=given).stdout
    assert kept.splitlines() == given.splitlines()[0::2]


@pytest.mark.slow
def test_threads_do_not_show(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(600)
    given = "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts))
    monkeypatch.setenv("SIMINDEX_THREADS", "1")
    one = run("dedup", "-d", 6, "--mark", input=given).stdout
    monkeypatch.setenv("SIMINDEX_THREADS", "3")
    assert run("dedup", "-d", 6, "--mark", input=given).stdout == one


def test_an_audit_within_the_input_is_refused_before_anything_is_read(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "old.jsonl").write_text('{"dropped": "a"}\n')
    assert "--audit new.jsonl is the input ., or in it" in run(
        "dedup", ".", "--audit", "new.jsonl", code=2
    ).stderr


def test_documents_that_no_index_can_hold_are_told_of(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n{"text": "some words"}\n')
    for kept in (2, 1):
        done = run("dedup", "a.jsonl", "--index", "i.sim")
        assert len(done.stdout.splitlines()) == kept
        assert "1 document without a fingerprint: i.sim cannot hold these, so each run prints " \
            "them" in done.stderr


def test_a_stream_is_printed_as_it_comes(spawn: Callable[..., Any]) -> None:
    """Each buffer before the next document, so that who reads the output need not wait."""
    process = spawn("dedup", "--buffer", 1, "--weighting", "sublinear", "-q")
    with process:
        for word in ("one", "two"):
            line = f'{{"text": "{word}"}}\n'.encode()
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == line
        process.stdin.close()
    assert process.returncode == 0


def test_a_full_disk_below_the_audit_is_not_said_to_be_the_output(run: Run) -> None:
    given = '{"text": "same"}\n' * 2
    said = run("dedup", "--audit", "/dev/full", "-q", input=given, code=3).stderr
    assert said == "simindex: /dev/full: No space left on device\n"
