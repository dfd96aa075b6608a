"""Stars of pairs, against a plain loop over documents and their neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import simindex
from simindex.errors import InvalidBatch, InvalidOption
from simindex.records import stars
from simindex.records.pairs import CollapsedPairs, EqualRows, Pairs

Near = dict[int, dict[int, int]]
Edges = dict[tuple[int, int], int]

edges = st.dictionaries(
    st.tuples(st.integers(0, 14), st.integers(0, 14)).filter(lambda pair: pair[0] < pair[1]),
    st.integers(0, 9), max_size=40,
)


def neighbours(of: Edges) -> Near:
    near: Near = {}
    for (a, b), distance in of.items():
        near.setdefault(a, {})[b] = distance
        near.setdefault(b, {})[a] = distance
    return near


def stars_of(near: Near, preferred: list[int] | None) -> dict[int, tuple[int, int]]:
    def rank(name: int) -> tuple[int, int]:
        if preferred is None:
            return -len(near[name]), name
        return preferred.index(name) if name in preferred else len(preferred), name

    heads: list[int] = []
    for name in sorted(near, key=rank):
        if not any(head in near[name] for head in heads):
            heads.append(name)
    return {
        name: (name, 0) if name in heads
        else min(((head, near[name][head]) for head in heads if head in near[name]),
                 key=lambda found: (found[1], found[0]))
        for name in near
    }  # fmt: skip


@given(edges, st.none() | st.lists(st.integers(0, 20), max_size=8), st.randoms(), st.booleans())
def test_stars_of_pairs_are_those_of_a_plain_loop(
    of: Edges, preferred: list[int] | None, random: object, spread: bool
) -> None:
    """In whatever order the pairs come, also twice, and for ids far apart."""
    step = 1 << 50 if spread else 1
    listed = [(a * step, b * step, distance) for (a, b), distance in of.items()]
    listed += [(a, b, distance + 1) for a, b, distance in listed[::3]]
    random.shuffle(listed)  # type: ignore[attr-defined]
    columns = np.array(listed, np.uint64).reshape(-1, 3)
    pairs = Pairs(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(np.uint16))
    found = pairs.clusters(
        prefer=None if preferred is None else [name * step for name in preferred]
    )
    once = None if preferred is None else list(dict.fromkeys(preferred))
    truth = stars_of(neighbours(of), once)
    assert {
        one.id // step: (one.representative // step, one.distance) for one in found
    } == truth
    assert [one.cluster for one in found] == sorted(one.cluster for one in found)


@given(st.integers(0, 2**32), st.sampled_from([1, 2]), st.integers(0, 4))
@pytest.mark.slow
def test_pairs_and_fingerprints_have_the_same_stars(seed: int, words: int, h: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 2**8, (60, words), np.uint64)
    preferred = rng.permutation(60)[:30]
    for prefer in (None, preferred):
        whole = simindex.find_clusters(rows, h=h, prefer=prefer, singletons=False)
        for collapse in (False, True):
            pairs = simindex.find_all(rows, h=h, collapse_equal=collapse)
            found = pairs.clusters(prefer=prefer)
            assert [one for one in found if one.size > 1] == list(whole)


def test_a_path_keeps_every_document_that_is_near_no_kept_one() -> None:
    """Single linkage makes one cluster of it, of which one document would be left."""
    rows = np.array([(1 << n) - 1 for n in range(0, 60, 2)], np.uint64)
    linked = simindex.find_clusters(rows, h=2, mode="components")
    assert linked.clusters == 1 and len(linked) == 30
    found = simindex.find_clusters(rows, h=2, prefer=np.arange(30))
    kept = set(found.representative.tolist())
    assert kept == set(range(0, 30, 2))
    assert (found.distance <= 2).all()


def test_a_function_prefers_among_documents_with_near_duplicates() -> None:
    rows = np.array([0, 1, 3, 7, 0xFFFF << 40], np.uint64)
    seen: list[int] = []

    def last_first(found: simindex.Clusters) -> object:
        seen.extend(found.id.tolist())
        return found.id[::-1]

    found = simindex.find_clusters(rows, h=1, prefer=last_first)
    assert seen == [0, 1, 2, 3]
    assert dict(zip(found.id.tolist(), found.representative.tolist(), strict=True)) == {
        0: 1, 1: 1, 2: 1, 3: 3, 4: 4
    }


def test_pairs_of_an_index_bring_its_keys(index_path: object) -> None:
    options = simindex.IndexOptions(keys=True)
    with simindex.open(index_path, "c", options=options) as index:  # type: ignore[arg-type]
        index.append(np.array([0, 0, 1, 0xFFFF << 40], np.uint64), keys=["a", "b", "c", "d"])
        index.commit()
        for collapse in (False, True):
            (part,) = index.pairs(h=1, collapse_equal=collapse)
            assert sorted(part.clusters().keys() or ()) == ["a", "b", "c"]


def test_a_preference_is_a_list_of_ids_for_stars() -> None:
    rows = np.array([0, 1], np.uint64)
    for wrong in (["a"], [[0]], [0.5], object()):
        with pytest.raises(InvalidBatch, match="not a list of ids"):
            simindex.find_clusters(rows, h=1, prefer=wrong)
    with pytest.raises(InvalidOption, match="prefer needs"):
        simindex.find_clusters(rows, h=1, mode="components", prefer=[0])
    assert simindex.find_clusters(rows, h=1, prefer=[]).clusters == 1


@pytest.mark.parametrize("at_once", [1, 3, 7])
@pytest.mark.parametrize("seed", range(12))
def test_stars_of_some_components_at_a_time_are_those_of_all(
    monkeypatch: pytest.MonkeyPatch, seed: int, at_once: int
) -> None:
    """With equal rows and preferred documents: no pair leads out of a component."""
    rng = np.random.default_rng(seed)
    documents = int(rng.integers(2, 60))
    a, b = np.sort(rng.integers(0, documents, (2, 50)), axis=0).astype(np.uint64)
    apart = a != b
    distance = rng.integers(1, 5, 50).astype(np.uint16)
    row = np.arange(documents, documents + 6, dtype=np.uint64)
    first = rng.integers(0, documents, 6).astype(np.uint64)
    pairs = CollapsedPairs(a[apart], b[apart], distance[apart], EqualRows(first, row))
    prefer = rng.permutation(documents)[:5] if seed % 2 else None

    def columns() -> list[bytes]:
        found = pairs.clusters(prefer=prefer)
        names = "id", "cluster", "representative", "distance", "size"
        return [getattr(found, name).tobytes() for name in names]

    expected = columns()
    monkeypatch.setattr(stars, "AT_ONCE", at_once)
    assert columns() == expected
