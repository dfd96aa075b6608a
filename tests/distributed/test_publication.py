"""A shard is published whole or not at all, once, and never changed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sharded import families

import simindex
from simindex.distributed import (
    Shards,
    build_shard,
    plan_shards,
    publication,
    verify_shard,
)
from simindex.distributed.shard_contents import describe
from simindex.distributed.shard_plan import ShardPlan
from simindex.errors import (
    CorruptFile,
    IndexExists,
    IndexNotFound,
    InvalidBatch,
    InvalidOption,
    RecipeMismatch,
    StorageFull,
)
from simindex.storage.files import durable

ROWS = families(1, 40)
PLAN = plan_shards(40, 2)


def part(number: int) -> list[simindex.Batch]:
    return [PLAN.part(number, simindex.Batch(ROWS))]


def names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "shards").iterdir())


def test_a_shard_is_an_index(tmp_path: Path) -> None:
    made = build_shard(PLAN, 1, part(1), tmp_path)
    with simindex.open(made.path) as index:
        assert index.query(ROWS[20:21], h=0).id.tolist() == [20]
        assert index.check() == []
    assert names(tmp_path) == [made.folder.name]
    assert made.name == f"00001-{made.rows_digest}/{made.seal}"
    assert (made.rows, made.least_id, made.greatest_id) == (20, 20, 39)
    assert verify_shard(made) == []


@pytest.mark.parametrize("work", [False, True])
def test_a_second_run_finds_the_shard(
    tmp_path: Path, work: bool, tree: Callable[[Path], Any]
) -> None:
    (tmp_path / "work").mkdir()
    folder = tmp_path / "work" if work else None
    made = build_shard(PLAN, 0, part(0), tmp_path / "root", work=folder)
    before = tree(tmp_path / "root")
    assert build_shard(PLAN, 0, part(0), tmp_path / "root", work=folder) == made
    assert tree(tmp_path / "root") == before
    assert [*(tmp_path / "work").iterdir()] == []
    assert verify_shard(made) == []


@pytest.mark.parametrize("other", ["sketch", "features"])
def test_rows_with_other_sketches_are_another_shard(tmp_path: Path, other: str) -> None:
    """Not the one that a build has left that ended before its map was written."""
    sketch, features = ROWS[:20], np.full(20, 400)
    plan = plan_shards(20, 1, options=simindex.IndexOptions(sketch_bits=64))
    ids = np.arange(20)
    left = simindex.Batch(ROWS[:20], ids=ids, sketch=sketch, features=features)
    build_shard(plan, 0, [left], tmp_path)
    if other == "sketch":
        sketch = ~sketch
    else:
        features = features * 2
    batch = simindex.Batch(ROWS[:20], ids=ids, sketch=sketch, features=features)
    made = build_shard(plan, 0, [batch], tmp_path)
    with simindex.open(made.path) as index:
        (found,) = index.rows()
    order = np.argsort(found.ids)
    assert np.array_equal(found.sketch[order], sketch)
    assert np.array_equal(found.sizes[order], batch.sizes)
    assert verify_shard(made) == []


def test_several_tasks_build_one_shard(tmp_path: Path) -> None:
    """As engines do that start a slow task twice."""
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: build_shard(PLAN, 0, part(0), tmp_path), range(4)))
    assert {shard.uuid for shard in made} == {made[0].uuid}
    assert names(tmp_path) == [made[0].folder.name]
    assert verify_shard(made[3]) == []


class Stopping:
    """Batches whose second reading, while the shard is built, ends the process."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Iterator[simindex.Batch]:
        self.read += 1
        yield from part(0)
        if self.read == 3:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_task_leaves_nothing_for_the_second_run(tmp_path: Path) -> None:
    code = (
        f"import sys; sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]}"
        f"\nimport test_publication as t\nt.build_shard(t.PLAN, 0, t.Stopping(), {str(tmp_path)!r})"
    )
    killed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    (left,) = names(tmp_path)
    assert left.startswith(".00000-")
    made = build_shard(PLAN, 0, part(0), tmp_path)
    assert names(tmp_path) == [made.folder.name]


@pytest.mark.parametrize("name", ["move", "sync_directory"])
def test_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    build_shard(PLAN, 1, part(1), tmp_path)
    before = names(tmp_path)

    def full(*_arguments: object) -> None:
        raise StorageFull("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(durable, name, full)
        with pytest.raises(StorageFull):
            build_shard(PLAN, 0, part(0), tmp_path)
    made = build_shard(PLAN, 0, part(0), tmp_path)
    assert names(tmp_path) == sorted([*before, made.folder.name])


def test_a_damaged_shard_is_not_taken_for_a_published_one(tmp_path: Path) -> None:
    made = build_shard(PLAN, 0, part(0), tmp_path)
    path = Path(made.path) / "catalog" / "data.mdb"
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(IndexExists, match="shard 0 cannot be published") as raised:
        build_shard(PLAN, 0, part(0), tmp_path)
    assert raised.value.remedy == "move it away, and build the shard again"
    Path(made.path).rename(made.folder / "elsewhere")
    with pytest.raises(IndexExists, match="holds 0 shards"):
        build_shard(PLAN, 0, part(0), tmp_path)
    made.folder.rename(tmp_path / "aside")
    assert verify_shard(build_shard(PLAN, 0, part(0), tmp_path)) == []


def test_a_shard_that_is_not_what_its_name_says_is_not_taken(tmp_path: Path) -> None:
    """A compacted copy has the same rows, in other bytes."""
    made = build_shard(PLAN, 0, part(0), tmp_path)
    made.folder.rename(tmp_path / "aside")  # nothing writes to a shard at its place
    with simindex.open(tmp_path / "aside" / Path(made.path).name, "w") as index:
        index.replace(part(0)[0])
        index.commit()
    (tmp_path / "aside").rename(made.folder)
    with pytest.raises(IndexExists, match="not what was published under this name"):
        build_shard(PLAN, 0, part(0), tmp_path)


def test_a_shard_of_other_options_is_not_taken_for_it(tmp_path: Path) -> None:
    build_shard(PLAN, 0, part(0), tmp_path)
    other = plan_shards(40, 2, options=simindex.IndexOptions(recipe=simindex.Recipe()))
    with pytest.raises(IndexExists, match="another recipe"):
        build_shard(other, 0, part(0), tmp_path)


@pytest.mark.parametrize(("option", "asked"), [
    ("structures", {"structures": ("psm",)}), ("times", {"times": True}),
    ("min_merge", {"min_merge": 4}), ("h", {"recipe": simindex.Recipe(h=9)}),
])
def test_a_shard_that_was_built_with_another_option_is_not_taken(
    tmp_path: Path, option: str, asked: dict[str, Any]
) -> None:
    """A build that is repeated either has the options it was given, or names the first that is
    not; h is no part of the identity of a recipe."""
    def plan(options: dict[str, Any]) -> ShardPlan:
        return plan_shards(40, 2, options=simindex.IndexOptions(**options))

    usual = {"recipe": simindex.Recipe(h=3)} if option == "h" else {}
    made = build_shard(plan(usual), 0, part(0), tmp_path)
    with pytest.raises(IndexExists, match=rf"it has {option}=.*, not ") as raised:
        build_shard(plan(asked), 0, part(0), tmp_path)
    assert raised.value.data["option"] == option
    assert f"give the {option} that it has" in str(raised.value.remedy)
    assert build_shard(plan(usual), 0, part(0), tmp_path) == made


def test_a_shard_that_is_swept_while_it_is_looked_at_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_shard(PLAN, 0, part(0), tmp_path)

    def swept(path: Path, *how: Any) -> Any:
        if path.parent.parent.name == "shards" and not (tmp_path / "aside").exists():
            path.parent.rename(tmp_path / "aside")
        return describe(path, *how)

    monkeypatch.setattr(publication, "describe", swept)
    assert verify_shard(build_shard(PLAN, 0, part(0), tmp_path)) == []
    assert (tmp_path / "aside").is_dir()


def test_a_copy_that_reads_back_differently_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    digests = iter(["one", "other"])
    monkeypatch.setattr(publication.digest, "files_digest", lambda *_: next(digests))
    with pytest.raises(CorruptFile, match="reads back differently"):
        build_shard(PLAN, 0, part(0), tmp_path / "root", work=tmp_path / "work")
    assert names(tmp_path / "root") == []


class Changing:
    """Other rows each time they are read."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Iterator[simindex.Batch]:
        self.read += 1
        yield simindex.Batch(ROWS[: self.read], ids=range(self.read))


def test_batches_must_stay_the_same(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="changed while it was built"):
        build_shard(PLAN, 0, Changing(), tmp_path)
    with pytest.raises(InvalidOption, match="read twice"):
        build_shard(PLAN, 0, iter(part(0)), tmp_path)
    with pytest.raises(InvalidOption, match="number=2"):
        build_shard(PLAN, 2, part(0), tmp_path)


def test_rows_that_do_not_belong_are_refused(tmp_path: Path) -> None:
    by_prefix = plan_shards(ROWS, 2, by="prefix")
    wrong = [by_prefix.part(1, simindex.Batch(ROWS))]
    with pytest.raises(InvalidOption, match="does not begin with 0"):
        build_shard(by_prefix, 0, wrong, tmp_path)
    with pytest.raises(RecipeMismatch, match="the shards have none"):
        build_shard(PLAN, 0, [simindex.Recipe().batch(["some words"], ids=[1])], tmp_path)
    with pytest.raises(InvalidBatch):
        build_shard(PLAN, 0, [simindex.Batch(families(1, 3, 2), ids=range(3))], tmp_path)
    with pytest.raises(InvalidBatch, match="has sketches of 64 bits"):
        build_shard(
            PLAN, 0, [simindex.Batch(ROWS[:3], ids=range(3), sketch=ROWS[:3])], tmp_path
        )
    assert names(tmp_path) == []


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    """Before any work: a collection is one folder, and not the folders above it."""
    batch = simindex.Batch(ROWS)
    with pytest.raises(IndexNotFound, match=r"no folder .*there for a collection") as raised:
        Shards.build(tmp_path / "there" / "s", batch, 2, run=_refused)
    assert raised.value.remedy == "create it first"
    with pytest.raises(IndexNotFound, match=r"no folder .*there"):
        build_shard(PLAN, 0, part(0), tmp_path / "there" / "s")
    assert not (tmp_path / "there").exists()


def _refused(*_: object) -> list[object]:
    raise AssertionError("a task was sent")
