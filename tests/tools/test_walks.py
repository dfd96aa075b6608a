"""What tools/walks.py tells of the walks; tests/test_layers.py says that none climbs."""

from __future__ import annotations

import pytest
import walks


def test_a_walk_is_told_function_by_function(capsys: pytest.CaptureFixture[str]) -> None:
    walks.main(["append"])
    told = capsys.readouterr().out.splitlines()
    depth = {line.strip(): len(line) - len(line.lstrip()) for line in told}
    assert depth["index/index: Index.append"] < depth["writing/waiting: Waiting.append"]
    assert depth["index/index: Index.commit"] < depth["writing/writer: Writer.commit"]


def test_a_walk_shows_where_an_append_becomes_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    walks.main(["segment"])
    told = [line.strip() for line in capsys.readouterr().out.splitlines()]
    steps = [
        "index/index: Index.append", "writing/waiting: Waiting.append",
        "storage/tables/segment: SegmentWriter.write", "storage/files/durable: NewFile.publish",
    ]
    assert [step for step in told if step in steps] == steps


def test_walks_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    walks.main([])
    rows = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    counts = {row[1]: row[2:-1] for row in cells}
    assert len(rows) == 9
    down, modules, fewest, folders, functions, module_lines, lines = (
        int(cell.replace(",", "")) for cell in counts["query again"]
    )
    assert 1 < down < functions
    assert folders <= fewest <= modules < functions < lines < module_lines
    assert functions < int(counts["query"][4])


def test_the_way_down_ends_with_the_deed(capsys: pytest.CaptureFixture[str]) -> None:
    walks.main(["--down"])
    ways = dict(line[2:].split(": ", 1) for line in capsys.readouterr().out.splitlines())
    # They may become shorter; decision 19 says what they were.
    assert {name: way.count(",") + 1 for name, way in ways.items()} == {
        "append": 8, "segment": 9, "compact": 8, "query": 7, "query again": 7, "top": 6, "pairs": 4,
    }
    first, *_, last = ways["segment"].split(", ")
    assert first == "storage/files/refusals: typed.<locals>.checked"
    assert last == "storage/files/durable: NewFile.publish"
    assert ways["pairs"].split(", ")[1:] == [
        "pairs/pair_search: PairSearch.__iter__", "pairs/pair_search: PairSearch._within",
        "pairs/pair_search: PairSearch._compared",
    ]


def test_an_unknown_walk_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        walks.main(["nowhere"])
    assert "append, segment, compact, query" in capsys.readouterr().err
