"""The benchmark measures what it says, on workloads small enough for a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))

WITH_SCRIPT_FOLDER = {name: v for name, v in os.environ.items() if name != "PYTHONSAFEPATH"}
"""The benchmark's own modules stand beside it."""


def bench(*arguments: str, into: Path) -> tuple[str, list[dict[str, Any]]]:
    """What a run prints, and its measurements."""
    finished = subprocess.run(
        [sys.executable, str(TOOLS / "bench.py"), *arguments, "--repeat", "1", "--no-peer",
         "--json", str(into)],
        capture_output=True, text=True, check=False, timeout=100, env=WITH_SCRIPT_FOLDER,
    )
    assert finished.returncode == 0, finished.stderr
    content = json.loads(into.read_text())
    assert finished.stdout.startswith(content["machine"])
    return finished.stdout, content["measurements"]


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


def test_online_single_reports_percentiles(tmp_path: Path) -> None:
    _, measured = bench(
        "online-single", "--rows", "5000", "--queries", "600", "--calls", "300",
        into=tmp_path / "a.json",
    )
    assert [one["workload"] for one in measured[:2]] == ["online-single p50", "online-single p99"]
    assert 0 < measured[0]["median"] <= measured[1]["median"]
    assert {one["unit"] for one in measured} == {"µs"}


def test_build_and_open_are_measured_in_fresh_processes(tmp_path: Path) -> None:
    _, (built,) = bench("build-fingerprints", "--rows", "50000", into=tmp_path / "a.json")
    assert built["unit"] == "rows/s"
    assert 16 <= built["bytes_per_row"] < 40
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
