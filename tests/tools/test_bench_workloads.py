"""The benchmark measures what it says, on workloads small enough for a test."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from benchmarks import limits, shell

from simindex.cli import COMMANDS

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


WITH_SCRIPT_FOLDER = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, [str(TOOLS), os.environ.get("PYTHONPATH")])),
}
"""The benchmark's own modules stand beside it."""

BENCH = """
import sys
import bench
from simindex.planning import measurement
from simindex.planning.machine import Machine
measurement.measure = lambda file: Machine(measured=True)
sys.exit(bench.main(sys.argv[1:]))
"""
"""Tuning takes the constants of another machine, because each measurement takes ten seconds."""


def bench(*arguments: str, into: Path) -> tuple[str, list[dict[str, Any]]]:
    """What a run prints, and its measurements."""
    finished = subprocess.run(
        [sys.executable, "-c", BENCH, *arguments, "--repeat", "1", "--no-peer",
         "--json", str(into)],
        capture_output=True, text=True, check=False, timeout=100, env=WITH_SCRIPT_FOLDER,
    )
    assert finished.returncode == 0, finished.stderr
    content = json.loads(into.read_text())
    assert finished.stdout.startswith(content["machine"])
    return finished.stdout, content["measurements"]


def test_backup_reports_new_and_later_backups(tmp_path: Path) -> None:
    _, measured = bench("backup", "--rows", "40000", into=tmp_path / "a.json")
    assert [one["engine"] for one in measured] == [
        "simindex, new", "simindex, after a commit", "cp --link",
    ]
    assert all(one["unit"] == "s" and 0 < one["median"] < 60 for one in measured)


@pytest.mark.slow
def test_window_keeps_its_rows_and_its_disk_without_a_compact(tmp_path: Path) -> None:
    _, measured = bench("expire", "--rows", "12000", into=tmp_path / "a.json")
    named = {one["workload"].removeprefix("expire: "): one for one in measured}
    assert len(named["expire"]["rates"]) == 90
    assert len(named["dead rows, of those alive"]["rates"]) == 90
    assert "compacted 1 segments, 0 dead rows" in named["disk"]["notes"]


@pytest.mark.slow
def test_stream_reports_memory_of_each_tenth(tmp_path: Path) -> None:
    _, (memory,) = bench("stream", "--rows", "14000", into=tmp_path / "a.json")
    assert len(memory["rates"]) == 10
    assert 10 < max(memory["rates"]) < 1000
    assert "0.0 GB in" in memory["notes"]


def test_online_psm_reports_rate_recall_and_flips(tmp_path: Path) -> None:
    printed, (ours,) = bench(
        "online-psm", "--rows", "30000", "--queries", "4000", into=tmp_path / "a.json"
    )
    assert "| online-psm | simindex psm | 30 k |" in printed
    assert ours["median"] > 0
    assert ours["recall"] > 0.9
    assert "k = " in ours["notes"]
    assert "of 2,000 planted pairs" in ours["notes"]
    assert "truth of 4,000 queries" in ours["notes"]


@pytest.mark.slow
def test_similarity_reports_what_was_planted_and_found(tmp_path: Path) -> None:
    _, (ours, exact) = bench(
        "similarity", "--rows", "30000", "--queries", "4000", into=tmp_path / "a.json"
    )
    assert exact["engine"] == "simindex exact h = 10"
    assert min(ours["median"], exact["median"]) > 0
    assert ours["recall"] > 0.9
    assert "planted pairs with a near sketch" in ours["notes"]


def test_assumed_recall_is_measured_of_every_kind(tmp_path: Path) -> None:
    """Nothing is learned from, and exact tables answer where they are cheaper."""
    _, measured = bench(
        "assumed-recall", "--rows", "200000", "--queries", "3000", into=tmp_path / "a.json"
    )
    by_flips, exactly = measured[:4], measured[4:]
    assert [one["workload"] for one in by_flips] == [
        f"assumed-recall, {kind}" for kind in oracle.KINDS
    ]
    assert all(one["notes"].endswith("; assumed: recall >= 0.95") for one in by_flips)
    assert all(one["recall"] > 0.93 for one in by_flips)
    assert [one["recall"] for one in exactly] == [1.0] * 4


def test_online_single_reports_percentiles(tmp_path: Path) -> None:
    _, measured = bench(
        "online-single", "--rows", "5000", "--queries", "600", "--calls", "300",
        into=tmp_path / "a.json",
    )
    assert [one["workload"] for one in measured[:2]] == ["online-single p50", "online-single p99"]
    assert 0 < measured[0]["median"] <= measured[1]["median"]
    assert {one["unit"] for one in measured} == {"µs"}


def test_scale_measures_an_index_of_each_size(tmp_path: Path) -> None:
    _, measured = bench(
        "scale", "--rows", "30000", "--calls", "20", "--dir", str(tmp_path / "made"),
        into=tmp_path / "a.json",
    )
    assert [one["workload"] for one in measured] == [
        "scale build", "scale 100,000 queries, h = 3", "scale 100,000 queries, h = 6",
        "scale one query p50", "scale one query p99", "scale open",
    ]
    assert all(one["rows"] == 30_000 and one["median"] > 0 for one in measured)
    assert "0.50 matches a query" in measured[1]["notes"]
    assert list((tmp_path / "made").iterdir()) == []


def test_start_measures_every_command(tmp_path: Path) -> None:
    _, measured = bench("start", "--rows", "10", "--repeat", "1", into=tmp_path / "a.json")
    found = {one["workload"]: one for one in measured}
    assert {f"start, {name}" for name in COMMANDS} <= set(found)
    assert [one["engine"] for one in measured[:2]] == ["python", "numpy"]
    assert all(one["median"] > 0 and one["unit"] == "ms" for one in measured)


def test_what_is_within_a_limit_is_measured_with_its_memory(tmp_path: Path) -> None:
    _, measured = bench(
        "limits", "--cliff", "limited", "--rows", "100000", "--queries", "2000",
        into=tmp_path / "a.json",
    )
    assert len(measured) == 12
    assert all("peak" in one["notes"] and one["rows"] == 20_000 for one in measured)
    assert "2,000 matches of 2,000 queries" in measured[-1]["notes"]


def test_plan_sets_predictions_beside_measurements(tmp_path: Path) -> None:
    """Of every structure, size of batch and place; the tuned machine is a stand-in's."""
    _, measured = bench(
        "plan", "--rows", "30000", "--queries", "10000", "--structure", "bphs:G=4,g=1",
        into=tmp_path / "a.json",
    )
    assert [one["engine"] for one in measured] == [
        name for name in ("psm, recall 0.95", "psm, recall 1", "bphs:G=4,g=1, recall 1")
        for _ in range(2)
    ]
    assert [one["workload"] for one in measured] == [
        "plan, m = 10,000, memory", "plan, m = 10,000, cold file",
    ] * 3
    for one in measured:
        predicted = float(re.search(r"predicted ([0-9,]+)/s", one["notes"])[1].replace(",", ""))
        off = float(re.search(r"([+-][0-9]+)%", one["notes"])[1]) / 100
        assert predicted / max(one["rates"]) - 1 == pytest.approx(off, abs=0.006)


def test_append_batches_compares_each_batch_with_the_first(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    printed, measured = bench(
        "append-batches", "--rows", "250000", "--plot", str(tmp_path / "append.svg"),
        into=tmp_path / "a.json",
    )
    assert [one["workload"] for one in measured[:5]] == [
        "append-batches first", "append-batches median", "append-batches p95",
        "append-batches max", "append-batches",
    ]
    assert [one["engine"] for one in measured[::5]] == ["simindex", "simindex, one core"]
    for first, middle, p95, most in (measured[:4], measured[5:9]):
        assert middle["median"] <= p95["median"] <= most["median"]
        assert f"{most['median'] / first['median']:.2f} x the first" in most["notes"]
    assert "batches within 2x of the first" in printed
    assert "twice the first batch" in (tmp_path / "append.svg").read_text()


def test_online_exact_measures_every_structure(tmp_path: Path) -> None:
    printed, measured = bench(
        "online-exact", "--rows", "20000", "--queries", "3000", into=tmp_path / "a.json"
    )
    assert [one["engine"] for one in measured] == [
        "simindex psm", "simindex bphs:G=2,g=1,r=1", "simindex bphs:G=3,g=1,r=2",
        "simindex bphs:G=4,g=1", "simindex bphs:G=5,g=2", "simindex bphs:nested=4x4",
    ]
    sizes = {one["engine"]: one["bytes_per_row"] for one in measured}
    assert sizes["simindex bphs:nested=4x4"] > sizes["simindex psm"] + 120
    assert "4 probes and" in printed
    assert "3,000; 2,000 confirmed by brute force" in printed


@pytest.mark.parametrize("popularity", ["power", "even"])
def test_online_exact_skewed_reports_rates_and_percentiles(
    tmp_path: Path, popularity: str
) -> None:
    _, measured = bench(
        "online-exact-skewed", "--rows", "20000", "--queries", "3000", "--calls", "200",
        "--structure", "bphs:G=4,g=1", "--popularity", popularity, into=tmp_path / "a.json",
    )
    name = f"online-exact-skewed {popularity}"
    assert [one["workload"] for one in measured] == [name, f"{name} p50", f"{name} p99"]
    assert measured[1]["median"] <= measured[2]["median"]


@pytest.mark.parametrize("h", [6, 7])
def test_rewrites_compare_exact_tables_with_psm(tmp_path: Path, h: int) -> None:
    _, measured = bench(
        f"online-h{h}", "--rows", "30000", "--queries", "4000", into=tmp_path / "a.json"
    )
    psm, *tables = measured
    assert psm["engine"] == "simindex psm"
    assert 0.95 <= psm["recall"] < 1
    assert [one["recall"] for one in tables] == [1.0, 1.0]
    assert all(f"h = {h};" in one["notes"] for one in tables)


def test_a_wrong_exact_answer_ends_the_run() -> None:
    from benchmarks.exact import Truth

    import simindex

    rows = oracle.uniform(np.random.default_rng(1), 50)[:, 0]
    truth = Truth(rows, rows[:9], 3)
    stats = simindex.QueryStats("scan", "exact", True, 0, 0, 0, 1, 0.0)

    def found(rows: Any) -> simindex.Matches:
        query = np.arange(len(rows), dtype=np.int64)
        return simindex.Matches(query, rows, np.zeros(len(rows), np.uint16), stats)

    truth.confirm(found(np.arange(9, dtype=np.uint64)), 9)
    for wrong in (np.arange(8, dtype=np.uint64), np.arange(1, 10, dtype=np.uint64)):
        with pytest.raises(SystemExit, match="brute force"):
            truth.confirm(found(wrong), 9)


@pytest.mark.parametrize("kind", ["multihash", "multihash4", "multihash4-1", "multihash3-2",
                                  "multihash2-3"])
def test_peers_are_exact_as_far_as_they_are_said_to_be(kind: str) -> None:
    """Every flip set of a part is needed: all flips as evenly over the parts as they can be."""
    pytest.importorskip("faiss", reason="the peer is FAISS")
    from benchmarks import peers

    rng = np.random.default_rng(6)
    rows = oracle.uniform(rng, 3000)[:, 0]
    parts, width, flips, _ = peers.MULTIHASHES[kind]
    h = peers.exact_for(kind)
    queries = rows[:60].copy()
    for at in range(len(queries)):
        for part in range(parts):
            for bit in rng.choice(width, flips + (part > 0), replace=False).tolist():
                queries[at] ^= np.uint64(1 << (part * width + bit))
    assert set(np.bitwise_count(queries ^ rows[:60]).tolist()) == {h}
    limits, found = peers.build(kind, rows).query(queries, h)
    query = np.repeat(np.arange(len(queries)), np.diff(limits.astype(np.int64)))
    got = set(zip(query.tolist(), found.tolist(), strict=True))
    assert got == {(int(q), int(row)) for q, row, _ in oracle.matches(rows, queries, h)}
    assert len(got) >= len(queries)
    assert (h >= 6) == (kind in peers.WITHIN_6_BITS)


def test_rows_of_templates_are_a_tenth_and_crowd() -> None:
    from benchmarks.exact import Skewed, rewritten

    rng = np.random.default_rng(1)
    skewed = Skewed(rng, "power")
    rows = skewed.drawn(rng, 4_000)
    nearest = oracle.distances(skewed.templates, rows).min(axis=1)
    assert (nearest <= 12).sum() == pytest.approx(400, abs=20)
    apart = oracle.as_words(rewritten(rng, rows, 6) ^ rows)
    distance = np.bitwise_count(apart)
    assert (distance.min(), distance.max()) == (0, 6)


def test_lookup_reports_time_and_rows_touched_of_every_way(tmp_path: Path) -> None:
    printed, measured = bench(
        "lookup", "--rows", "60000", "--queries", "4000", into=tmp_path / "a.json"
    )
    assert [(one["workload"], one["engine"]) for one in measured] == [
        (f"lookup {kind}", f"simindex {way}")
        for kind in ("uniform", "skewed power")
        for way in ("directory", "binary", "interpolation")
    ]
    assert {one["unit"] for one in measured} == {"ns"}
    assert all(one["median"] > 0 for one in measured)
    assert "no row touched" in measured[0]["notes"]
    bisected, jumped = (
        float(re.search(r"([0-9.]+) rows touched", one["notes"])[1]) for one in measured[1:3]
    )
    assert jumped < 8 < 15 < bisected <= 16
    assert "t = 12;" in printed


def test_a_lookup_that_finds_other_rows_ends_the_run() -> None:
    from benchmarks.lookups import answer, confirm

    from simindex.storage.tables.table import sort_table

    rows = oracle.uniform(np.random.default_rng(1), 500)
    table = sort_table("", rows, np.arange(500, dtype=np.uint64), None, horizon=0)
    right = answer(table, rows, "directory")
    confirm("binary", answer(table, rows, "binary"), right)
    with pytest.raises(SystemExit, match="binary"):
        confirm("binary", right._replace(end=right.end + np.uint32(1)), right)


def test_rotation_reports_the_recall_it_measures(tmp_path: Path) -> None:
    _, measured = bench("rotation", "--rows", "20000", into=tmp_path / "a.json")
    assert len(measured) == 6
    for with_recall, bare in zip(measured[::2], measured[1::2], strict=True):
        assert with_recall["recall"] > 0.99
        assert "of 20,000 rows; found 0.99" in with_recall["notes"] or (
            "found 1.0000 of 1,000 planted" in with_recall["notes"]
        )
        assert bare["recall"] is None


def test_pairs_are_counted_on_uniform_and_on_skewed_rows(tmp_path: Path) -> None:
    printed, measured = bench("pairs", "--rows", "20000", into=tmp_path / "a.json")
    assert "| pairs skewed | simindex find_all collapse_equal | 20 k |" in printed
    plain, collapsed, hot, groups = measured
    assert {one["unit"] for one in measured} == {"s"}
    assert "h = 3; 200 pairs, of 200; peak resident 0." in plain["notes"]
    assert 16 < plain["bytes_per_row"] < 1000

    def counts(one: dict[str, Any]) -> list[int]:
        found = re.search(r"([\d,]+) pairs, of ([\d,]+);", one["notes"])
        assert found is not None
        return [int(count.replace(",", "")) for count in found.groups()]

    assert 100 < counts(collapsed)[0] < counts(collapsed)[1] == 200
    assert counts(hot)[0] == counts(hot)[1] == counts(groups)[1] > 200_000
    assert counts(groups)[0] < 1000


def test_build_and_open_are_measured_in_fresh_processes(tmp_path: Path) -> None:
    _, built = bench("build-fingerprints", "--rows", "50000", into=tmp_path / "a.json")
    for tables, one in zip((1, 4), built, strict=True):
        assert one["unit"] == "rows/s"
        assert 8 + 8 * tables <= one["bytes_per_row"] < 32 + 8 * tables
    _, opened = bench("open", "--rows", "50000", into=tmp_path / "b.json")
    assert [one["workload"] for one in opened] == ["open", "open + first query"]
    assert opened[0]["median"] < opened[1]["median"]


def test_real_text_counts_pairs_of_consecutive_revisions(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="real-text reads .zst")
    rng = np.random.default_rng(1)
    lines = []
    for page in range(30):
        words = rng.integers(0, 3000, 300).astype(str).tolist()
        for seq in range(4):
            words[int(rng.integers(300))] = f"new{page}x{seq}"
            lines.append(json.dumps({"path": f"p{page}", "seq": seq, "text": " ".join(words)}))
    data = tmp_path / "data"
    data.mkdir()
    (data / "made.jsonl.zst").write_bytes(
        zstandard.ZstdCompressor().compress("\n".join(lines).encode())
    )
    _, (source, every) = bench("real-text", "--data", str(data), into=tmp_path / "a.json")
    assert source["rows"] == every["rows"] == 120
    assert source["recall"] == every["recall"] > 0.8
    found, pairs = (int(number) for number in source["notes"].split(" revision")[0].split(" of "))
    assert found / pairs == source["recall"]
    # 90 consecutive pairs, asked from both sides; some are further apart than 3.
    assert 60 < pairs <= 180


def test_text_reports_every_recipe_and_level_and_checks_them(tmp_path: Path) -> None:
    from simindex._kernels import LEVELS

    _, measured = bench("text", "--rows", "60", "--threads", "1", into=tmp_path / "a.json")
    ours = {one["workload"]: one for one in measured if one["engine"] == "simindex"}
    assert len(ours) == 11
    for one in ours.values():
        checked = 25 if one["rows"] >= 25 else one["rows"]
        assert f"equal to regex + mmh3 on {checked} of {checked} documents" in one["notes"]
    assert "times the 40,000 asked for" in ours["text: tf, words 1-3"]["notes"]
    assert "MiB without the texts" in ours["text: tf, words 1-3"]["notes"]
    # 300 words, 299 pairs, 298 triples.
    rate, features = ours["text: tf, words 1-3"]["median"], 897
    assert f"{rate * features / 1e6:.1f} M features/s" in ours["text: tf, words 1-3"]["notes"]
    assert {one["engine"] for one in measured} == {"simindex", *(f"simindex, {n}" for n in LEVELS)}


def test_text_cuts_real_pages_into_300_words(tmp_path: Path) -> None:
    from benchmarks.texts import documents

    zstandard = pytest.importorskip("zstandard", reason="the pages are .zst")
    page = " ".join(f"Word_{i}, é{i}" for i in range(400))
    records = [
        {"path": path, "seq": seq, "text": f"{path} {seq}: {page}"}
        for path in "ab" for seq in range(3)
    ]
    for name in ("peps", "gesetze"):
        (tmp_path / f"{name}.jsonl.zst").write_bytes(
            zstandard.ZstdCompressor().compress("\n".join(map(json.dumps, records)).encode())
        )
    found = documents(tmp_path, 10, seed=1)
    assert found.origin == "cut from peps"
    assert len(found.texts) == 4
    words = [re.findall(r"\w+", text) for text in found.texts]
    assert [one[0] for one in words] == ["a", "Word_149", "b", "Word_149"]
    assert {len(one) for one in words} == {300}
    assert documents(tmp_path, 3, seed=1).texts == found.texts[:3]


def test_made_up_documents_have_300_words_of_english_lengths() -> None:
    from benchmarks.texts import documents

    found = documents(None, 200, seed=3)
    words = [re.findall(r"\w+", text) for text in found.texts]
    assert {len(one) for one in words} == {300}
    assert found.texts == documents(None, 200, seed=3).texts != documents(None, 200, seed=4).texts
    assert 4.4 < np.mean([len(word) for one in words for word in one]) < 6.0


def test_text_refuses_a_result_that_differs_from_the_definition() -> None:
    from benchmarks.recipes import RECIPES, check
    from benchmarks.texts import made

    texts = [*made(3, seed=2), "漢字とかなカナ Latin漢字 ภาษาไทยไม่มี"]
    recipe = RECIPES["tf, words 1-3"].fitted(texts)
    batch = recipe.batch(texts)
    assert check("tf", texts, batch) == "equal to regex + mmh3 on 4 of 4 documents"
    assert batch.weights is not None
    batch.weights[2, 5] += 2
    with pytest.raises(SystemExit, match="document 2 differs"):
        check("tf", texts, batch)


def test_text_corpus_takes_every_document_in_seconds(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="text-corpus reads .zst")
    texts = [f"page {i} of some words and {i * i} more" for i in range(40)]
    lines = [json.dumps({"path": str(i), "seq": 0, "text": text}) for i, text in enumerate(texts)]
    (tmp_path / "made.jsonl.zst").write_bytes(
        zstandard.ZstdCompressor().compress("\n".join(lines).encode())
    )
    _, measured = bench("text-corpus", "--data", str(tmp_path), into=tmp_path / "a.json")
    assert [one["workload"] for one in measured] == [
        "text-corpus: tf, words 1-3", "text-corpus: tf-idf, words"
    ]
    for one in measured:
        assert one["rows"] == 40
        assert one["unit"] == "s"
        size = sum(map(len, texts))
        assert f"{size / one['median'] / 1e6:.0f} MB/s" in one["notes"]


def test_ingest_marks_every_copy(tmp_path: Path) -> None:
    _, measured = bench("ingest", "--rows", "200", into=tmp_path / "a.json")
    assert [one["unit"] for one in measured][:2] == ["documents/s", "µs"]
    for one in measured[::2]:
        assert 190 <= one["rows"] <= 240
        copies, edits = re.findall(r"([\d,]+) of ([\d,]+) (?:copies|edits)", one["notes"])
        assert copies[0] == copies[1] != "0"
        assert 0 < int(edits[0]) <= int(edits[1])
        marked = int(re.findall(r"(\d+) marked", one["notes"])[0])
        assert marked == int(copies[0]) + int(edits[0])  # no two made-up originals are near


def test_formats_are_built_beside_what_bounds_them(tmp_path: Path) -> None:
    pytest.importorskip("fastwarc", reason="the extra web is not installed")
    pytest.importorskip("pyarrow", reason="the extra arrow is not installed")
    pytest.importorskip("resiliparse", reason="the extra web is not installed")
    pages = tmp_path / "data" / "html"
    pages.mkdir(parents=True)
    (pages / "a.html").write_text("<html><body><p>one page of a few words</p></body></html>")
    zstandard = pytest.importorskip("zstandard", reason="the extra zst is not installed")
    record = json.dumps({"path": "a", "seq": 0, "text": "some words of a page " * 100})
    (tmp_path / "data" / "peps.jsonl.zst").write_bytes(zstandard.compress(f"{record}\n".encode()))
    _, measured = bench(
        "formats", "--rows", "40", "--repeat", "1", "--data", str(tmp_path / "data"),
        into=tmp_path / "a.json",
    )
    told = {one["workload"]: (one["rows"], one["unit"]) for one in measured[::5]}
    assert told["html, one core to an index"] == (40, "documents/s")
    assert told["html, all cores to an index"] == (40, "documents/s")
    built = ["documents/s"] * 2  # with the start, and without
    bounded = [*built, "documents/s", "times", "times"]
    assert [one["unit"] for one in measured] == [
        *bounded, *bounded, *built, *bounded, *bounded[2:],
    ]
    of_second = [*measured[12:14], *measured[17:]]
    for whole, without, bound, *shares in (
        measured[:5], measured[5:10], measured[12:17], of_second,
    ):
        assert whole["median"] < without["median"]
        for share, rate in zip(shares, (whole, without), strict=True):
            assert share["median"] == pytest.approx(rate["median"] / bound["median"])


def test_text_bounds_parts_make_up_the_whole(tmp_path: Path) -> None:
    _, measured = bench("text-bounds", "--rows", "50", into=tmp_path / "a.json")
    at = {one["workload"].removeprefix("text-bounds: "): one["median"] for one in measured}
    parts = at["splitting"] + at["hashing"] + at["sums, 64 bits"]
    assert parts == pytest.approx(at["whole, words 1-3, 64 bits"])
    assert "897 features" in measured[0]["notes"]
    assert {one["unit"] for one in measured} == {"µs", "GB/s"}


def test_calls_in_turn_are_repeated_round_by_round() -> None:
    from benchmarks.stopwatch import Stopwatch

    order: list[str] = []
    times = Stopwatch(2).in_turn({name: lambda name=name: order.append(name) for name in "ab"})
    assert order == ["a", "b"] * 3
    assert [len(seconds) for seconds in times.values()] == [2, 2]


def test_a_corpus_is_the_same_for_the_same_seed_and_knows_its_pairs() -> None:
    from benchmarks.corpora import Corpus

    corpus = Corpus(rows=3000, queries=1000, seed=5, slice_rows=1000)
    slices = dict(corpus.slices())
    assert list(slices) == [0, 1000, 2000]
    assert np.array_equal(slices[1000], corpus.weights_from(1000))
    assert not np.array_equal(slices[0], slices[1000])
    stored = oracle.signs(np.concatenate(list(slices.values())))
    rewrites = stored[900:1000] ^ stored[:100]
    assert np.bitwise_count(rewrites).max() <= 3
    asked = [corpus.questions_about(first, weights) for first, weights in slices.items()]
    weights, partner = corpus.mixed(
        np.concatenate([one for one, _ in asked]), np.concatenate([ids for _, ids in asked])
    )
    assert len(weights) == len(partner) == 1000
    near = partner >= 0
    assert 480 < near.sum() <= 502
    apart = oracle.signs(weights[near]) ^ stored[partner[near]]
    assert np.bitwise_count(apart).max() <= 3
    assert len(oracle.matches(stored, oracle.signs(weights[~near]), 3)) == 0


def test_topk_measures_scan_and_slice_lists_on_every_set(tmp_path: Path) -> None:
    printed, measured = bench(
        "topk", "--rows", "3000", "--graph-rows", "2000", "--queries", "40", "--max-error", "0",
        "--max-error", "2", "--rerank", "200", into=tmp_path / "a.json",
    )
    found = {(one["workload"], one["engine"]): one for one in measured}
    for name, rows in (("topk", 3000), ("topk graph clustered", 2000), ("topk graph latent", 2000)):
        for suffix in ("", " single"):
            exact, least, most = (
                found[name + suffix, f"simindex {engine}"]
                for engine in ("scan", "issl, max_error 0", "issl, max_error 2")
            )
            assert {one["unit"] for one in (exact, least, most)} == {"ms"}
            assert {one["rows"] for one in (exact, least, most)} == {rows}
            assert exact["recall"] == 1 >= most["recall"] >= least["recall"] > 0.3
            assert most["recall"] > 0.95
            assert "40 queries confirmed by brute force" in exact["notes"]
            assert "rerank 200; 64 lists and" in least["notes"]
            assert "rerank 200; 8,768 lists and" in most["notes"]
        lists, bare, whole = (
            found[f"{name} build", f"simindex {engine}"]
            for engine in ("slice lists", "psm", "psm,issl")
        )
        assert {one["unit"] for one in (lists, bare, whole)} == {"signatures/s"}
        assert lists["bytes_per_row"] == 4 * 64 * (rows + 65_537) / rows
        assert whole["bytes_per_row"] - bare["bytes_per_row"] == pytest.approx(
            lists["bytes_per_row"], rel=0.02
        )
        assert found[f"{name} read", "memory, read once"]["median"] > 0
    assert "| topk read | simindex scan | 3 k |" in printed


@pytest.mark.parametrize("kind", ["clustered", "latent"])
def test_signatures_are_as_far_apart_as_their_kind_says(kind: str) -> None:
    from benchmarks.signatures import drawn

    of = drawn(kind, 5000, 200, seed=3)
    again = drawn(kind, 5000, 200, seed=3)
    assert np.array_equal(of.rows, again.rows) and np.array_equal(of.queries, again.queries)
    assert of.rows.shape == (5000, 16) and of.queries.shape == (200, 16)
    distance = np.sort(oracle.distances(of.rows, of.queries), axis=1)
    nearest, tenth = np.median(distance[:, 0]), np.median(distance[:, 9])
    assert distance.mean() == pytest.approx(512, abs=8)
    # A row flips 0.175 of its bits on average: two of a centre differ in 296, and 50 are of one.
    assert (230 < nearest < tenth < 290) if kind == "clustered" else (tenth < 190)
    assert (distance < 400).sum(axis=1).mean() == pytest.approx(50, abs=9) or kind == "latent"


def test_flips_have_the_chance_asked_for() -> None:
    from benchmarks.signatures import flips

    share = np.repeat([0, 1, 26, 64, 128, 255], 2000)
    counted = np.bitwise_count(flips(np.random.default_rng(4), share)).sum(axis=1) / 1024
    assert counted.reshape(6, 2000).mean(axis=1) == pytest.approx(
        [0, 1 / 256, 26 / 256, 1 / 4, 1 / 2, 255 / 256], abs=0.002
    )


def test_recall_counts_each_id_once_and_by_its_own_distance() -> None:
    from benchmarks.signatures import Nearest, Signatures

    rows = np.zeros((6, 16), dtype=np.uint64)
    rows[:, 0] = [0b1, 0b11, 0b111, 0b1111, 0b110, 0b11111]
    truth = Nearest(Signatures("made", rows, np.zeros((2, 16), dtype=np.uint64)), 3)
    exact = np.array([[0, 1, 4], [0, 1, 4]], dtype=np.uint64)
    with pytest.raises(SystemExit, match="brute force"):
        truth.learn(exact[:, ::-1])
    truth.learn(exact)
    none = 2**64 - 1
    for ids, share in (
        ([[0, 1, 4]], 1), ([[4, 1, 0]], 1), ([[0, 1, 2]], 2 / 3), ([[0, 0, 0]], 1 / 3),
        ([[0, 1, none]], 2 / 3), ([[none] * 3], 0), ([[0, 1, 4], [5, 3, 2]], 1 / 2),
    ):
        assert truth.recall(np.array(ids, dtype=np.uint64)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("kind", "recalls"),
    [("flat", [1]), ("ivf", [1, 1]), ("multihash", [0.5, 0.9]), ("hnsw", [0.9, 0.8, 0.9])],
)
def test_peers_of_wide_signatures_find_most_on_a_small_set(
    kind: str, recalls: list[float]
) -> None:
    """IVF with 8 cells and 16 looked into is exact, as Flat is."""
    pytest.importorskip("faiss", reason="the peer is FAISS")
    from benchmarks import toppeers
    from benchmarks.signatures import Nearest, drawn

    of = drawn("clustered", 2000, 40, seed=6)
    truth = Nearest(of, 10)
    truth.learn(np.array(truth.brute))
    peer = toppeers.build(kind, of.rows, nlist=8)
    assert len(peer.settings) == len(recalls)
    for setting, least in zip(peer.settings, recalls, strict=True):
        setting.set()
        recall = truth.recall(peer.top(of.queries, 10))
        assert least <= recall <= 1, setting.name


def test_a_table_sets_each_engine_beside_the_first_peer() -> None:
    from benchmarks.report import Measurement, markdown

    table = markdown([
        Measurement("w", "simindex psm", 10_000_000, (2e6, 4e6, 3e6), "queries/s", 16.2, 0.96),
        Measurement("w", "FAISS", 10_000_000, (1.0e5,), "queries/s"),
        Measurement("w p50", "simindex", 1_234, (5.0,), "µs"),
        Measurement("w p50", "FAISS", 1_234, (20.0,), "µs"),
    ])
    lines = table.splitlines()[2:]
    assert lines[0] == (
        "| w | simindex psm | 10 M | 3.00 M queries/s | 2.00 M - 4.00 M | 16.20 | 0.9600 | 30x |  |"
    )
    assert lines[1] == "| w | FAISS | 10 M | 100 k queries/s | 100 k - 100 k |  |  |  |  |"
    assert "| 1,234 | 5.00 µs |" in lines[2]
    assert "| 4x |" in lines[2]


def test_model_sets_predictions_beside_what_is_measured(tmp_path: Path) -> None:
    _, measured = bench(
        "model", "--rows", "30000", "--queries", "4000", into=tmp_path / "a.json"
    )
    engines = [one["engine"] for one in measured]
    assert engines[:3] == [
        "simindex psm, recall 0.95", "simindex psm, recall 1", "simindex bphs:G=2,g=1,r=1, recall 1"
    ]
    assert engines[-3:] == [
        "simindex scan, recall 1", "simindex auto, recall 0.95", "simindex auto, recall 1"
    ]
    assert all(one["median"] > 0 and "predicted" in one["notes"] for one in measured)


@pytest.mark.parametrize("single", [False, True])
def test_auto_grid_measures_every_cell(tmp_path: Path, single: bool) -> None:
    name, extra = ("auto-grid single", ["--single"]) if single else ("auto-grid", [])
    printed, measured = bench(
        "auto-grid", "--rows", "3000", "--queries", "300", "--calls", "20", "--structure", "psm",
        "--structure", "bphs:G=4,g=1", *extra, into=tmp_path / "a.json",
    )
    *cells, worst = measured
    assert [one["engine"] for one in cells] == [
        f"simindex auto, h = {h}, recall {recall}"
        for h in range(1, 9) for recall in ("0.9", "0.95", "0.99", "1")
    ]
    assert {one["workload"] for one in cells} == {name}
    asked = [int(one["notes"].split("; ")[-1].split()[0]) for one in cells]
    assert asked == sorted(asked)
    assert (asked[0], asked[-1]) == (20, 20) if single else 20 < asked[0] < asked[-1] == 300
    ratios = [float(re.findall(r"queries/s: ([\d.]+);", one["notes"])[0]) for one in cells]
    assert worst["median"] == pytest.approx(max(ratios), abs=0.005)
    above = int(re.findall(r"; (\d+) of 32 above 1.3:", worst["notes"])[0])
    assert sum(ratio > 1.305 for ratio in ratios) <= above <= sum(r > 1.295 for r in ratios)
    assert f"| {name} worst | simindex auto | 3 k |" in printed


def test_auto_grid_sets_auto_beside_the_fastest_choice() -> None:
    from benchmarks.grid import LIMIT, Cell, Choice, _line, _worst

    def choice(method: str, *times_ns: float) -> Choice:
        return Choice(method, method, 50.0, 100, times_ns)

    slow, fast = choice("scan", 900.0), choice("bphs:G=4,g=1", 90.0, 100.0, 300.0)
    near = Cell(3, 0.9, choice("auto", 120.0), (slow, fast))
    above = Cell(2, 1.0, choice("auto", 131.0, 10.0, 999.0), (slow, fast))
    assert (near.best, near.ratio, above.ratio) == (fast, 1.2, 1.31)
    assert near.ratio < LIMIT < above.ratio
    assert str(above).split("; ") == [
        "auto: auto 131 ns, predicted 50, -62%",
        "single: bphs:G=4,g=1 100 ns, predicted 50, -50%", "scan 900 ns, predicted 50, -94%",
    ]
    line = _line("auto-grid", 7, above)
    assert line.median == pytest.approx(1e9 / 131)
    assert "best bphs:G=4,g=1, 10.0 M queries/s: 1.31;" in line.notes
    worst = _worst("auto-grid", 7, [near, above])
    assert worst.rates == (1.31,)
    assert worst.notes == "h = 2 at 1; 1 of 2 above 1.3: h = 2 at 1"
    assert _worst("auto-grid", 7, [near]).notes.endswith("0 of 1 above 1.3: none")


def test_auto_grid_asks_all_exact_choices_and_slow_ones_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from argparse import Namespace
    from dataclasses import replace

    from benchmarks import grid
    from benchmarks.corpora import Corpus
    from benchmarks.stopwatch import Stopwatch
    from benchmarks.stored import prepare

    import simindex
    from simindex.planning.machine import Machine

    found = Machine(measured=True)
    monkeypatch.setattr("simindex.planning.measurement.measure", lambda file: found)
    stored = prepare(Corpus(60_000, 30_000, 1, h=8), tmp_path)
    batch = grid.questions(stored, 3)
    most = len(batch)
    pairs = oracle.matches(np.array(stored.fingerprints), batch.fingerprints[:500], 3)
    assert 10_000 < most < 30_000
    assert len(np.unique(pairs[:, 0])) == pytest.approx(250, abs=45)
    options = Namespace(single=False, calls=20)
    with simindex.open(stored.path, "w") as index:
        index.compact(full=True, structures=("psm", "bphs:G=4,g=1", "bphs:G=3,g=1,r=2"))
    with simindex.open(stored.path) as index:
        assert grid.exact_designs(index, 3) == ["bphs:G=4,g=1", "bphs:G=3,g=1,r=2"]
        assert grid.exact_designs(index, 4) == ["bphs:G=3,g=1,r=2"]
        # On any machine a scan takes four times as long, and tables answer all queries in it.
        _, scan_ns = grid.predicted(index, batch, 3, 1.0, "scan", most)
        monkeypatch.setattr(grid, "CALL_S", scan_ns * 1e-9 * most / 4)
        cell = grid.measured(options, index, batch, Stopwatch(1, "cpu"), 3, 1.0)
        asked = {one.method: one.queries for one in cell.single}
        assert list(asked) == ["bphs:G=4,g=1", "bphs:G=3,g=1,r=2", "psm", "scan"]
        assert cell.auto.queries == asked["bphs:G=4,g=1"] == most
        assert grid.LEAST_QUERIES <= asked["scan"] < most / 2
        plan, ns = grid.predicted(index, batch, 3, 0.9, "psm", most)
        found = index.query(batch, h=3, recall=0.9, method="psm")
        assert f"k={found.stats.flips}" in plan
        assert most * ns * 1e-9 == pytest.approx(
            index.explain(batch, h=3, recall=0.9, method="psm").expected_s, rel=1e-6
        )

        def misjudged(*asked: Any) -> tuple[str, float]:
            plan, ns = predicted(*asked)
            return plan, ns * (100 if asked[4] == "bphs:G=4,g=1" else 1)

        def timed(*asked: Any) -> list[grid.Choice]:
            ns = {"bphs:G=4,g=1": 250.0, "bphs:G=3,g=1,r=2": 600.0, "auto": 300.0}
            rounds.append({one.method: one.queries for one in asked[-1]})
            return [replace(one, times_ns=(ns.get(one.method, 1e4),)) for one in asked[-1]]

        rounds: list[dict[str, int]] = []
        predicted = grid.predicted
        monkeypatch.setattr(grid, "predicted", misjudged)
        monkeypatch.setattr(grid, "_timed", timed)
        cell = grid.measured(options, index, batch, Stopwatch(1, "cpu"), 3, 1.0)
        first, again = rounds
        assert first["bphs:G=4,g=1"] < most
        assert again["bphs:G=4,g=1"] == again["auto"] == most
        assert again["scan"] == first["scan"] < most
        assert cell.ratio == 1.2


def test_limits_measures_its_cliffs(tmp_path: Path) -> None:
    """All but `limited`, which has its own test, and `shell`, which always reads 300,000 texts."""
    chosen = [
        option for name in limits.CLIFFS if name not in ("limited", "shell")
        for option in ("--cliff", name)
    ]
    _, measured = bench("limits", "--rows", "20000", *chosen, into=tmp_path / "a.json")
    assert [(one["workload"], one["rows"], one["unit"]) for one in measured[:7]] == [
        ("commit of one deletion", 20_000, "ms"), ("a reader's next query", 20_000, "ms"),
        ("the first batches of keys", 4_000, "k/s"), ("replacing them again", 4_000, "k/s"),
        ("first query after a commit", 4_000, "µs"),
        ("another, after a commit elsewhere", 4_000, "µs"), ("another, at once", 4_000, "µs"),
    ]
    assert {one["workload"] for one in measured[7:]} == {
        "0 shared bits", "24 shared bits", "100 templates: find_all, collapse_equal",
        "100 templates: find_clusters", "256 bits: within 31 bits", "256 bits: the 10 nearest",
        "segments h=3", "segments h=6", "segments, one query h=3", "segments h=3, to compacted",
        "segments h=6, to compacted", "segments, one query h=3, to compacted",
    } | {
        f"seen_or_add of {kind}, threads: {threads}{of}" for kind in ("fingerprints", "texts")
        for threads in (1, 2, 8) for of in ("", ", p50", ", p99", ", longest call")
    }
    assert len(measured[3]["rates"]) == 10
    assert re.search(r"segments \d+ MB, catalog \d+; after compact segments", measured[3]["notes"])


@pytest.mark.slow
def test_gate_reports_precision_and_recall(tmp_path: Path) -> None:
    _, (one,) = bench("gate", "--rows", "3000", into=tmp_path / "a.json")
    assert one["unit"] == "s" and 0 < one["median"] < 60
    assert one["recall"] >= 0.95
    assert "300 documents of 300 words; 30 copies with 5%" in one["notes"]
    assert float(re.findall(r"precision ([\d.]+)", one["notes"])[0]) >= 0.95


def test_the_peak_of_a_command_is_its_own() -> None:
    held = np.ones(1 << 26)  # 512 MB of the process that starts it
    ended = shell.simindex(["--version"], stdout=subprocess.DEVNULL)
    assert 5 << 20 < ended.peak_bytes < held.nbytes
    with pytest.raises(SystemExit, match="simindex nothing ended with 2"):
        shell.simindex(["nothing"])


@pytest.mark.slow
def test_the_cost_of_a_sketch_is_measured_in_turn(tmp_path: Path) -> None:
    _, measured = bench("sketch-cost", "--rows", "400", "--repeat", "1", into=tmp_path / "a.json")
    ways = {one["workload"]: [] for one in measured}
    for one in measured:
        ways[one["workload"]].append(one)
    assert [(name, len(some)) for name, some in ways.items()] == [
        ("text: balanced tf-idf, words", 2), ("text: tf, words 1-3", 2),
        ("text: binary, 3 words", 2), ("dedup", 3),
    ]
    assert all(one["rows"] == 300 for one in measured[:6])
    assert all(300 < one["rows"] < 500 for one in measured[6:])
    for plain, *others in ways.values():
        for one in others:
            ratio = number(r"([\d.]+) times the speed", one["notes"])
            assert ratio == pytest.approx(one["median"] / plain["median"], abs=0.006)


def test_stars_by_similarity_are_compared_with_true_cosines(tmp_path: Path) -> None:
    _, (one,) = bench("chains-similarity", "--rows", "6400", "--repeat", "1",
                      into=tmp_path / "a.json")
    assert one["rows"] == 6400 and one["median"] > 0
    notes = one["notes"]
    dropped, kept = number(r"([\d,]+) dropped", notes), number(r"kept ([\d,]+)", notes)
    assert dropped + kept == 6400 and kept > 6400 // 16
    assert number(r"stated similarity ([\d.]+)", notes) >= 0.9
    assert number(r"or more, ([\d,]+) of them", notes) == 0
    assert 0.78 < number(r"true cosine ([\d.]+) or more", notes) < 0.9
    assert 3 < number(r"\(([\d.]+) %\) below", notes) < 10
    assert number(r"ones, ([\d.]+) %", notes) > 98.5


def test_distinct_documents_are_those_below_all_kept_ones_of_their_family() -> None:
    """Two families in four shapes of sixteen; all but two lie on their first document."""
    from benchmarks.similar_chains import DIMENSIONS, LENGTH, SHAPES, _told

    families = 2
    documents = np.zeros((SHAPES * LENGTH * families, DIMENSIONS), np.float32)
    place = np.arange(len(documents))
    documents[place, 2 * (place // (LENGTH * families)) + place % families] = 1
    first = place // (LENGTH * families) * (LENGTH * families) + place % families
    far = int(first[-1]) + 3 * families  # and one more, at 0.8 to the first and 1 to each other
    for one in (far, far + 2 * families):
        documents[one] *= np.float32(0.8)
        documents[one, -1] = np.sqrt(1 - documents[one] @ documents[one])
    for kept, expected in ((8, "80.000 %"), (9, "100.000 %")):
        dropped = place != first
        dropped[far + 2 * families] = kept == 8
        of, error = place[dropped], np.full(int(dropped.sum()), 0.01, np.float32)
        told = _told(documents, of, first[of], np.full(len(of), 0.95, np.float32), error)
        assert f"kept {kept}, {expected} of the documents below 0.9" in told
        assert f"ones, {expected} of those two standard errors below" in told
        assert f"{10 - kept} ({100 * (10 - kept) / len(of):.3f} %) below 0.9" in told


def number(pattern: str, notes: str) -> float:
    return float(re.findall(pattern, notes)[0].replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["chains-documents", "chains-texts"])
def test_certificates_are_compared_with_true_cosines(tmp_path: Path, workload: str) -> None:
    """Estimates drop some documents that are less similar, and texts hardly any."""
    _, (one,) = bench(workload, "--rows", "4000", into=tmp_path / "a.json")
    notes = one["notes"]
    dropped, kept = number(r"([\d,]+) dropped", notes), number(r"kept ([\d,]+)", notes)
    assert dropped + kept == one["rows"] == 4000 and 1500 < dropped < 2500
    assert number(r"stated similarity ([\d.]+)", notes) >= 0.9
    assert number(r"or more, ([\d,]+) of them", notes) == 0
    below = number(r"\(([\d.]+) %\) below", notes)
    assert below < 2 if workload == "chains-texts" else 3 < below < 15
    assert number(r"ones, ([\d.]+) %", notes) > 99


def test_cosines_of_chained_documents_are_those_of_counts() -> None:
    from benchmarks.chained_documents import Corpus

    corpus = Corpus.of(800, np.random.default_rng(5))
    squares = corpus.idf() ** 2
    a = np.arange(len(corpus.words))
    found = corpus.cosines(a, a // 16 * 16, squares)

    def product(one: Counter[int], other: Counter[int]) -> float:
        return sum(count * other[word] * squares[word] for word, count in one.items())

    for row in range(0, len(a), 37):
        one, other = (
            Counter(word for word in corpus.words[at].tolist() if word)
            for at in (row, row // 16 * 16)
        )
        wanted = product(one, other) / (product(one, one) * product(other, other)) ** 0.5
        assert abs(float(found[row]) - wanted) < 1e-6
