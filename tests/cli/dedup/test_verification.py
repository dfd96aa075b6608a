"""`--verify-text` of `dedup` and `clusters`, against exact cosines of all pairs."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from math import hypot
from pathlib import Path
from random import Random
from typing import Any

import pytest
from word_families import families

import simindex
from simindex.cli.commands import dedup as command
from simindex.planning.doubt import doubt_of
from simindex.planning.similarity import similar

Run = Callable[..., Any]

RECIPE = ("--weighting", "tf", "--ngram", 1, "--sketch-bits", 256)
ASKED = ("--similarity", 0.85)
OPTIONS = (*RECIPE, *ASKED)
DOUBT = doubt_of(similar(0.85, h=None, recall=1.0, bits=64, sketch_bits=256, weighted=True))


def shuffled() -> list[str]:
    random = Random(11)
    texts = families(random, 6)
    texts += [f"{text} another{place}" for place, text in enumerate(texts[::5])]  # surely near
    random.shuffle(texts)
    return texts


TEXTS = shuffled()
LINES = [json.dumps({"id": f"{n}t", "text": text}) for n, text in enumerate(TEXTS)]


def cosine(a: str, b: str) -> float:
    one, other = ({w: t.split().count(w) for w in t.split()} for t in (a, b))
    dot = sum(count * other.get(word, 0) for word, count in one.items())
    return dot / hypot(*one.values()) / hypot(*other.values())


def lost_by_brute_force(order: list[int]) -> dict[str, dict[str, float]]:
    """What each may have lost to, with the exact cosine: one of those that are equally near by the
    estimate. Nothing where one is certain."""
    recipe = simindex.Recipe(weighting="tf", ngram=1, sketch_bits=256)
    batch = recipe.batch(TEXTS)
    assert batch.sketch is not None
    rows = [int(row) for row in batch.fingerprints]
    sketches = [int.from_bytes(row.tobytes(), "little") for row in batch.sketch]
    kept: list[int] = []
    lost: dict[str, dict[str, float]] = {}
    for name in order:
        near = sorted(
            ((sketches[name] ^ sketches[other]).bit_count(), place, other)
            for place, other in enumerate(kept)
            if (rows[name] ^ rows[other]).bit_count() <= DOUBT.similar.h
        )
        if near and near[0][0] <= DOUBT.certain:
            lost[f"{name}t"] = {}
            continue
        found = [
            (bits, f"{other}t", exact) for bits, _, other in near if bits <= DOUBT.most
            and (exact := cosine(TEXTS[name], TEXTS[other])) >= 0.85
        ]
        if not found:
            kept.append(name)
            continue
        lost[f"{name}t"] = {key: exact for bits, key, exact in found if bits == found[0][0]}
    return lost


@pytest.fixture
def written(tmp_path: Path) -> str:
    (tmp_path / "a.jsonl").write_text("\n".join(LINES) + "\n")
    return "a.jsonl"


def audited(name: str = "r.jsonl") -> dict[str, Any]:
    return {one["dropped"]: one for one in map(json.loads, Path(name).read_text().splitlines())}


def require_lost(audit: dict[str, Any], order: list[int]) -> None:
    expected = lost_by_brute_force(order)
    assert audit.keys() == expected.keys()
    exact = {name: one for name, one in expected.items() if one}
    assert len(exact) > 5
    for name, one in audit.items():
        assert one["exact"] is (name in exact)
        assert (one["similarity_error"] == 0) is one["exact"]
        if name in exact:
            assert one["similarity"] == pytest.approx(exact[name][one["lost_to"]], abs=1e-4)


@pytest.mark.parametrize("keep", ["first", "longest"])
@pytest.mark.parametrize("buffer", [5, 4096])
@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.slow
def test_dedup_decides_doubtful_pairs_by_their_texts(
    run: Run, written: str, keep: str, buffer: int, lasting: bool
) -> None:
    """Wherever buffers end, and again in a second run, which finds all in the index."""
    index = ("--index", "k.sim") if lasting else ()
    call = ("dedup", written, *OPTIONS, "--verify-text", "--buffer", buffer, "--keep", keep,
            "--audit", "r.jsonl", *index)
    order = [*range(len(TEXTS))]
    if keep == "longest":
        order.sort(key=lambda n: len(TEXTS[n]), reverse=True)
    done = run(*call)
    audit = audited()
    require_lost(audit, order)
    assert done.stdout.splitlines() == [
        line for n, line in enumerate(LINES) if f"{n}t" not in audit
    ]
    assert "doubtful pairs compared by text" in done.stderr
    assert "as estimated" not in done.stderr
    if lasting:
        assert run(*call).stdout == ""
        again = {name: one for name, one in audited().items() if one["why"] != "same id"}
        assert again.keys() == audit.keys()


def test_a_pipe_is_verified_as_it_is_read(run: Run) -> None:
    done = run(
        "dedup", *OPTIONS, "--verify-text", "--json", "--audit", "r.csv", input="\n".join(LINES)
    )
    summary = json.loads(done.stderr.splitlines()[-1])
    expected = lost_by_brute_force([*range(len(TEXTS))])
    assert summary["dropped"] == len(expected)
    assert summary["verified"] == summary["verified_kept"] + summary["verified_dropped"] > 0
    assert summary["overruled"] > 0 and summary["unreadable"] == 0
    with Path("r.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert {row["dropped"] for row in rows} == expected.keys()
    assert {row["exact"] for row in rows} == {"true", "false"}


def test_documents_of_an_earlier_run_remain_as_estimated(run: Run, tmp_path: Path) -> None:
    for name, lines in (("a.jsonl", LINES[:40]), ("b.jsonl", LINES[40:])):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    run("dedup", "a.jsonl", *OPTIONS, "--index", "k.sim", "--verify-text", "-q")
    done = run("dedup", "b.jsonl", *ASKED, "--index", "k.sim", "--verify-text", "--mark")
    assert "doubtful pairs as estimated: the inputs do not have the texts" in done.stderr
    assert "near_duplicate_of" in done.stdout


def clusters(run: Run, *options: Any, inputs: str = "a.jsonl") -> Any:
    return run("clusters", "b.sim", inputs, *ASKED, "--verify-text", *options)


def test_certificates_of_clusters_say_what_is_exact(run: Run, written: str) -> None:
    run("build", "b.sim", written, *RECIPE, "-q")
    done = clusters(run, "--keep", "representative", "--certificates", "c.jsonl")
    proofs = [json.loads(line) for line in Path("c.jsonl").read_text().splitlines()]
    exact = [one for one in proofs if one["exact"]]
    assert len(exact) > 5 and len(exact) < len(proofs)
    for one in proofs:
        a, b = (TEXTS[int(one[side][:-1])] for side in ("dropped", "kept"))
        assert one["exact"] is (one["distance"] > DOUBT.certain)
        if one["exact"]:
            assert one["similarity"] == pytest.approx(cosine(a, b), abs=1e-4)
            assert one["similarity"] >= 0.85 and one["similarity_error"] == 0
    assert "doubtful pairs compared by text" in done.stderr
    listed = [json.loads(line) for line in clusters(run, "--json").stdout.splitlines()]
    assert sum(one["exact"] for one in listed) == len(exact)
    assert sum(one["id"] != one["representative"] for one in listed) == len(proofs)
    by_text = clusters(run, "--keep", "longest").stdout.splitlines()
    kept = {line.split("\t")[1] for line in by_text if line.startswith("keep")}
    assert kept and all("\t" in line for line in by_text)


def test_a_text_that_changed_leaves_its_pairs_as_estimated(run: Run, written: str) -> None:
    run("build", "b.sim", written, *RECIPE, "-q")
    usual = run("clusters", "b.sim", *ASKED).stdout
    others = [json.dumps({"id": f"{n}t", "text": "quite another text now"}) for n in range(72)]
    Path(written).write_text("\n".join(others) + "\n")
    done = clusters(run)
    assert done.stdout == usual
    assert "texts changed since the index was built" in done.stderr
    Path(written).write_text(LINES[0] + "\n")
    assert "the inputs do not have the texts" in clusters(run).stderr


def test_what_cannot_be_verified_is_refused(
    run: Run, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("build", "b.sim", written, *RECIPE, "-q")
    os.mkfifo(tmp_path / "pipe")
    for call, told in (
        (("clusters", "b.sim", written, "--verify-text"), "--verify-text needs --similarity"),
        (("clusters", "b.sim", *ASKED, "--verify-text"), "name them after the index"),
        (("clusters", "b.sim", "-", *ASKED, "--verify-text"), "is read once"),
        (("clusters", "b.sim", "pipe", *ASKED, "--verify-text"), "is read once"),
        (("clusters", "b.sim", written, *ASKED, "--verify-text", "--mode", "components"),
         "--verify-text needs --mode star"),
        (("clusters", "b.sim", "--temp-dir", "."), "--temp-dir needs --verify-text"),
        (("dedup", written, "--verify-text"), "--verify-text needs --similarity"),
        (("dedup", written, *ASKED, "--verify-text", "--keep", "none"), "keeps no document"),
        (("dedup", written, *ASKED, "--measure", "jaccard"), "give --weighting binary"),
        (("dedup", written, "--measure", "jaccard"), "none is given"),
        (("dedup", written, "--calibrated"), "--calibrated needs --index"),
        (("dedup", written, "--calibrated", "--index", "new.sim"), "has no recommendation"),
        (("dedup", written, "--similarity", 0.3, "--index", "new.sim"), "from 0.5 to 1"),
        (("dedup", written, "--calibrated", "--index", "b.sim"), "has no recommendation"),
    ):
        assert told in run(*call, code=2).stderr, call
    assert not Path("new.sim").exists()
    monkeypatch.setattr(command, "_require_nearness", lambda *args, **options: None)
    assert run("dedup", written, "--measure", "jaccard", *ASKED, *RECIPE, code=2)


def test_dedup_by_a_resemblance(run: Run, written: str) -> None:
    done = run("dedup", written, "--weighting", "binary", "--ngram", 1, "--measure", "jaccard",
               "--similarity", 0.7, "--verify-text", "--audit", "r.jsonl")
    assert "of similarity 0.7 or more" in done.stderr
    found = [one for one in audited().values() if one["exact"]]
    assert len(found) > 5
    for one in found:
        a, b = (set(TEXTS[int(one[side][:-1])].split()) for side in ("dropped", "lost_to"))
        assert one["similarity"] == pytest.approx(len(a & b) / len(a | b), abs=1e-4)
        assert one["similarity"] >= 0.7
        assert one["why"] == "of similarity 0.7 or more"


def test_dedup_takes_the_recommended_threshold(run: Run, written: str) -> None:
    run("build", "b.sim", written, *RECIPE, "-q")
    run("calibrate", "b.sim", written, "-q")
    with simindex.open("b.sim", "r") as index:
        advice = index.advice
    assert advice is not None
    done = run("dedup", written, "--index", "b.sim", "--calibrated", "--mark", "--json")
    summary = json.loads(done.stderr.splitlines()[-1])
    assert summary.get("similarity") == advice.ask_similarity
    assert summary["h"] == advice.h or advice.ask_similarity is not None
    told = run("dedup", written, "--index", "b.sim", "--calibrated", "-d", 3, code=2).stderr
    assert "--calibrated decides these" in told
