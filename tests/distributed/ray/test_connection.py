"""Shards on Ray answer what one index does, byte for byte, also while actors are killed."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from sharded import (
    SHARDS,
    answer,
    answers,
    families,
    local_index,
    similar_answers,
    sketched,
)

import simindex
from simindex.distributed import Shards, read_map
from simindex.errors import (
    ClosedIndex,
    ClusterFailed,
    CorruptFile,
    IndexNotFound,
    InvalidBatch,
    InvalidOption,
    RecipeMismatch,
)

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'simindex[ray]'")

from simindex.distributed import ray as on_ray  # noqa: E402
from simindex.distributed.ray.build_tasks import _Tasks  # noqa: E402

H = 3


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Any]:
    """A collection of three shards, connected."""
    Shards.build(tmp_path / "s", simindex.Batch(families(1, 300)), 3)
    with on_ray.connect(tmp_path / "s") as made:
        yield made


def process_of(shards: Any, number: int) -> int:
    """The process of the actor of a shard."""
    (actor,) = shards._holders._actors[number]
    pid: int = ray.get(actor.handle.call.remote(os.getpid))
    return pid


def parts_of(found: Any) -> Any:
    """Answers of a stream as one."""
    parts = [(part.query, part.id, part.distance) for part in found]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


@pytest.mark.parametrize("number", SHARDS)
def test_all_calls_give_the_bytes_of_one_index(tmp_path: Path, number: int) -> None:
    """Query, top, pairs, clusters, what loses, and ingest, with equal rows and chains."""
    fingerprints = families(1, 200)
    queries = np.concatenate([fingerprints[:40], families(2, 20)])
    more = np.concatenate([fingerprints[:10], families(3, 20)])
    on_ray.build(tmp_path / "s", simindex.Batch(fingerprints), number, by="prefix")
    with local_index(tmp_path / "local.sim", simindex.Batch(fingerprints)) as index:
        local = Shards(tmp_path / "s")
        with on_ray.connect(tmp_path / "s") as shards:
            assert answers(shards, queries, H, 5) == answers(index, queries, H, 5)
            for ours, theirs in zip(shards.dedup(h=H), local.losers(h=H), strict=True):
                assert ours.tobytes() == theirs.tobytes()
            with simindex.open(tmp_path / "local.sim", "w") as writer:
                assert answer(shards.ingest(more, h=H)) == answer(writer.ingest(more, h=H))
            with simindex.open(tmp_path / "local.sim") as later:
                assert answers(shards, queries, H, 5) == answers(later, queries, H, 5)
            assert shards.verify() == []


@pytest.mark.parametrize("number", SHARDS)
def test_a_similarity_gives_the_bytes_of_one_index(tmp_path: Path, number: int) -> None:
    batch = sketched(31, 160)
    near = {"similarity": 0.9, "recall": 0.8}
    options = simindex.IndexOptions(sketch_bits=256)
    on_ray.build(tmp_path / "s", batch, number, by="ones", options=options)
    with (
        local_index(tmp_path / "local.sim", batch) as index,
        on_ray.connect(tmp_path / "s") as shards,
    ):
        assert similar_answers(shards, batch, near) == similar_answers(index, batch, near)
        (streamed,) = shards.query_stream(batch, **near)
        assert answer(streamed) == answer(index.query(batch, **near))
        local = Shards(tmp_path / "s").losers(**near)
        assert len(local.id) > 40
        for ours, theirs in zip(shards.dedup(**near), local, strict=True):
            assert ours.tobytes() == theirs.tobytes()


def test_an_empty_shard_is_no_special_case(tmp_path: Path) -> None:
    fingerprints = families(13, 1)
    on_ray.build(tmp_path / "s", simindex.Batch(fingerprints), 2)
    assert [shard.rows for shard in read_map(tmp_path / "s").shards].count(0) == 1
    with (
        local_index(tmp_path / "local.sim", simindex.Batch(fingerprints)) as index,
        on_ray.connect(tmp_path / "s") as shards,
    ):
        assert answers(shards, fingerprints, H, 1) == answers(index, fingerprints, H, 1)


def test_keys_come_with_answers_of_replicas(tmp_path: Path) -> None:
    fingerprints = families(4, 120)
    batch = simindex.Batch(fingerprints, keys=[f"page {number}" for number in range(120)])
    on_ray.build(tmp_path / "s", batch, 2)
    with on_ray.connect(tmp_path / "s", replicas=2) as shards:
        assert shards._holders._count() == 4
        local = Shards(tmp_path / "s")
        assert answers(shards, fingerprints, H, 4) == answers(local, fingerprints, H, 4)


def test_functions_of_a_folder_answer_and_end_their_actors(tmp_path: Path) -> None:
    fingerprints = families(5, 60)
    root = tmp_path / "s"
    on_ray.build(root, simindex.Batch(fingerprints), 1)
    local = Shards(root)
    assert answer(on_ray.query(root, fingerprints, h=H)) == answer(local.query(fingerprints, h=H))
    assert answer(on_ray.top(root, fingerprints, 3)) == answer(local.top(fingerprints, 3))
    found = [list(map(answer, held)) for held in (on_ray.pairs(root, h=H), local.pairs(h=H))]
    assert found[0] == found[1]
    assert answer(on_ray.clusters(root, h=H)) == answer(local.clusters(h=H))
    assert on_ray.dedup(root, h=H).id.tolist() == local.losers(h=H).id.tolist()
    (streamed,) = on_ray.query_stream(root, fingerprints, h=H)
    assert answer(streamed) == answer(local.query(fingerprints, h=H))
    how: dict[str, Any] = {
        "similarity": 0.95, "measure": "cosine", "recall": 0.9, "first": True, "method": "scan",
        "memory_limit": 1 << 26, "threads": 1,
    }
    shutil.copytree(root, tmp_path / "copy")
    expected = answer(Shards(tmp_path / "copy").ingest(fingerprints[:5], **how))
    assert answer(on_ray.ingest(root, fingerprints[:5], **how)) == expected
    assert len(local) == 65


def test_a_stream_answers_batches_in_order_and_asks_few_at_once(shards: Any) -> None:
    queries = [families(seed, 30) for seed in range(8)]
    taken: list[int] = []

    def source() -> Iterator[Any]:
        for number, some in enumerate(queries):
            taken.append(number)
            yield some

    stream = shards.query_stream(source(), h=H)
    first = next(stream)
    assert len(taken) <= 3  # two are asked, and the third waits
    columns = parts_of([first, *stream])
    whole = shards.query(np.concatenate(queries), h=H)
    for column, expected in zip(columns, (whole.query, whole.id, whole.distance), strict=True):
        assert column.tobytes() == expected.tobytes()


def test_a_batch_is_cut_into_pieces(shards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simindex.distributed.ray.blocks.ROWS", 16)
    queries = families(1, 50)
    parts = list(shards.query_stream(queries, h=H))
    assert len(parts) == 4
    assert parts_of(parts)[0].tobytes() == shards.query(queries, h=H).query.tobytes()


def test_a_killed_actor_is_back_with_the_right_answer(shards: Any) -> None:
    """Within 1 s on an idle machine; the bound here is that of a busy one."""
    queries = families(1, 60)
    expected = answer(shards.query(queries, h=H))
    os.kill(process_of(shards, 1), signal.SIGKILL)
    started = time.monotonic()
    assert answer(shards.query(queries, h=H)) == expected
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("call", ["query", "pairs", "clusters", "ingest"])
def test_actors_are_killed_in_the_middle_of_calls(shards: Any, tmp_path: Path, call: str) -> None:
    """Each actor once, between a second call's tasks: answers and shards stay right."""
    queries = np.concatenate([families(1, 10), families(2, 50)])
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    calls: dict[str, Callable[[Any], Any]] = {
        "query": lambda held: answer(held.query(queries, h=H)),
        "pairs": lambda held: [answer(part) for part in held.pairs(h=H)],
        "clusters": lambda held: answer(held.clusters(h=H)),
        "ingest": lambda held: answer(held.ingest(queries, h=H)),
    }
    expected = calls[call](Shards(tmp_path / "copy"))
    pids = [process_of(shards, shard.number) for shard in shards.shard_map.shards]

    def kill(done: int, total: int) -> None:
        if pids:
            os.kill(pids.pop(), signal.SIGKILL)

    shards._holders.told = kill
    assert calls[call](shards) == expected
    assert not pids
    assert Shards(tmp_path / "s").verify() == []


def test_queries_go_on_while_a_shard_is_republished(shards: Any, tmp_path: Path) -> None:
    """Another process splits shards, adds rows far from all queries, and removes old versions."""
    queries = families(1, 60)
    expected = answer(shards.query(queries, h=H))
    other = Shards(tmp_path / "s")
    wrong: list[Any] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            try:
                if answer(shards.query(queries, h=H)) != expected:
                    wrong.append("another answer")
            except Exception as error:
                wrong.append(error)
                return

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        for seed in range(4):
            other.append(oracle.uniform(np.random.default_rng(100 + seed), 20))
            other.sweep(older_than_s=0)
        other.split(0)
        other.sweep(older_than_s=0)
    finally:
        stop.set()
        thread.join()
    assert wrong == []
    assert answer(shards.query(queries, h=H)) == expected
    assert len(shards.shard_map) == 4


def test_an_actor_keeps_its_shard_open_and_follows_new_versions(shards: Any) -> None:
    number = shards.shard_map.shards[0].number
    (actor,) = shards._holders._actors[number]
    before = ray.get(actor.handle.call.remote(os.listdir, f"/proc/{process_of(shards, number)}/fd"))
    shards.append(families(9, 9))
    shards.query(families(1, 5), h=H)
    after = ray.get(actor.handle.call.remote(os.listdir, f"/proc/{process_of(shards, number)}/fd"))
    assert abs(len(after) - len(before)) <= 3


def test_progress_is_told_of_each_task(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    on_ray.build(
        tmp_path / "s", simindex.Batch(families(1, 60)), 3,
        progress=lambda *done: told.append(done),
    )
    assert told[:3] == [(1, 3), (2, 3), (3, 3)]
    told.clear()
    with on_ray.connect(tmp_path / "s", progress=lambda *done: told.append(done)) as shards:
        told.clear()
        list(shards.pairs(h=H))
    assert told[-6:] == [(number, 6) for number in range(1, 7)]


# -- what is refused -------------------------------------------------------------------------------


def test_too_little_capacity_is_an_error_and_no_hang(tmp_path: Path) -> None:
    Shards.build(tmp_path / "s", simindex.Batch(families(1, 60)), 3)
    message = r"9 actors take 2\.25 processors, and the cluster has 2"
    with pytest.raises(ClusterFailed, match=message) as raised:
        on_ray.connect(tmp_path / "s", replicas=3)
    assert raised.value.remedy is not None
    with pytest.raises(ClusterFailed, match="1 tasks take 3 processors"):
        on_ray.build(tmp_path / "t", simindex.Batch(families(1, 60)), 2, cpus=3)
    assert not (tmp_path / "t").exists()


def test_processors_that_others_have_are_an_error_after_a_while(tmp_path: Path) -> None:
    Shards.build(tmp_path / "s", simindex.Batch(families(1, 60)), 3)
    with (
        on_ray.connect(tmp_path / "s", replicas=2),
        pytest.raises(ClusterFailed, match=r"of which .* free"),
    ):
        on_ray.connect(tmp_path / "s", wait_s=3)
    on_ray.connect(tmp_path / "s").close()


@pytest.mark.parametrize("raised", [ConnectionError, RuntimeError, Exception])
def test_a_cluster_that_does_not_start_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type[Exception]
) -> None:
    """Ray raises an Exception without a type of its own if its node aborted on a busy machine."""
    def busy(**_: object) -> None:
        raise raised("The current node timed out during startup")

    Shards.build(tmp_path / "s", simindex.Batch(families(1, 60)), 3)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", busy)
    with pytest.raises(ClusterFailed, match="timed out during startup") as told:
        on_ray.connect(tmp_path / "s")
    assert told.value.remedy


def test_wrong_options_are_named(tmp_path: Path) -> None:
    Shards.build(tmp_path / "s", simindex.Batch(families(1, 60)), 3)
    for name, value in [
        ("replicas", 0), ("cpus", 2), ("cpus", -1), ("in_flight", 0), ("wait_s", -1), ("cpus", "x"),
        ("cpus", True), ("cpus", float("nan")), ("wait_s", float("nan")),
    ]:
        with pytest.raises(InvalidOption, match=name):
            on_ray.connect(tmp_path / "s", **{name: value})
    for name, value in [("cpus", True), ("wait_s", -1), ("wait_s", "x")]:
        with pytest.raises(InvalidOption, match=name):
            on_ray.build(tmp_path / "t", families(1, 6), 2, **{name: value})
    assert not (tmp_path / "t").exists()


def test_a_wait_may_be_endless_and_a_closed_connection_starts_nothing(tmp_path: Path) -> None:
    rows = families(1, 60)  # as a Batch has them
    on_ray.build(tmp_path / "s", rows, 2, wait_s=float("inf"))
    with on_ray.connect(tmp_path / "s", wait_s=float("inf")) as shards:
        assert len(shards.query(rows, h=0)) >= 60
    shards.close()
    with pytest.raises(ClosedIndex, match="connection to the shards is closed"):
        shards.query(rows, h=H)
    assert shards._holders._actors == {}
    with pytest.raises(InvalidBatch):
        on_ray.build(tmp_path / "t", "text", 2)
    assert not (tmp_path / "t").exists()


def test_a_shard_is_split_where_no_actor_has_room(tmp_path: Path) -> None:
    """The actors of other shards open it, until there are processors for one of its own."""
    rows = families(1, 60)
    Shards.build(tmp_path / "s", rows, 2)
    expected = answer(Shards(tmp_path / "s").query(rows, h=H))
    with on_ray.connect(tmp_path / "s", cpus=0.75) as shards:
        assert len(shards.split(0)) == 3
        assert answer(shards.query(rows, h=H)) == expected
        assert len(shards._holders._actors) == 2
        shards._holders._cpus = 0.25  # as if others had ended
        assert answer(shards.query(rows, h=H)) == expected
        assert len(shards._holders._actors) == 3


def test_damage_is_named_before_any_work(tmp_path: Path) -> None:
    made = Shards.build(tmp_path / "s", simindex.Batch(families(1, 60)), 3)
    first, second, third = (Path(shard.path) for shard in made.shard_map.shards)
    with pytest.raises(IndexNotFound, match="there is no shard map"):
        on_ray.connect(tmp_path / "elsewhere")
    name, size = made.shard_map.shards[2].files[-1]
    whole = (third / name).read_bytes()
    (third / name).write_bytes(whole[: size // 2])
    with pytest.raises(CorruptFile, match=rf"shard 2 .* is not whole: {name}") as raised:
        on_ray.connect(tmp_path / "s")
    assert raised.value.data["shard"] == 2
    (third / name).write_bytes(whole)
    second.rename(tmp_path / "aside")
    with pytest.raises(IndexNotFound, match=r"shard 1 \(.*\) is missing"):
        on_ray.connect(tmp_path / "s")
    first.rename(second)
    (tmp_path / "aside").rename(first)
    with pytest.raises(CorruptFile, match="shard 0"):
        on_ray.connect(tmp_path / "s")
    (tmp_path / "s" / "shards.json").write_text("{}")
    with pytest.raises(CorruptFile, match=r"shards\.json is damaged"):
        on_ray.connect(tmp_path / "s")


def test_batches_that_do_not_fit_are_refused(shards: Any, tmp_path: Path) -> None:
    before = read_map(tmp_path / "s")
    with pytest.raises(InvalidBatch):
        shards.query(families(1, 3, 2), h=H)
    with pytest.raises(InvalidBatch, match="has the id 7"):
        shards.ingest(simindex.Batch(families(1, 1), ids=[7]))
    with pytest.raises(RecipeMismatch):
        shards.ingest(simindex.Recipe().batch(["a text of some words"]))
    assert read_map(tmp_path / "s") == before


def test_a_task_that_raises_raises_the_same_error_here(shards: Any) -> None:
    with pytest.raises(InvalidOption, match="threads=0") as raised:
        shards.query(families(1, 3), h=H, threads=0)
    assert raised.value.remedy is not None


def test_nothing_that_was_sent_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray 2.60 aborts this process if a task is cancelled while it fails. An error comes once the
    others have ended, so nothing of the call writes any more; Ctrl-C does not wait for them."""
    def cancel(*_: object) -> None:
        raise AssertionError("a task was cancelled")

    def after(path: Path, seconds: float) -> None:  # in here, so that it pickles by value
        if not seconds:
            raise InvalidOption("fails at once")
        time.sleep(seconds)
        path.touch()

    monkeypatch.setattr(ray, "cancel", cancel)
    monkeypatch.setattr("simindex.distributed.ray.cluster.LEFT_S", 60)
    paths = [tmp_path / name for name in "abc"]
    tasks = _Tasks(0.5, 60, None)
    with pytest.raises(InvalidOption, match="fails at once"):
        list(tasks.run(after, paths, [0, 0.5, 0.5]))
    assert sorted(tmp_path.iterdir()) == paths[1:]
    same = simindex.Batch(families(1, 8), ids=[0] * 8)
    with pytest.raises(InvalidOption, match="the id 0 comes twice"):
        on_ray.build(tmp_path / "s", same, 4)

    stopped: list[float] = []

    def stop(*_: object) -> None:
        stopped.append(time.monotonic())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(_Tasks(0.5, 60, stop).run(after, paths[:2], [0.01, 2.5]))
    assert time.monotonic() - stopped[0] < 2
