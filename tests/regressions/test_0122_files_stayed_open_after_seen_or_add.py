"""After `seen_or_add` of a text, what made that call quick and the snapshot that it is of held each
other. So the files of an earlier commit, and of a closed index, stayed open until Python looked for
such circles: a process that opened many indexes ran out of descriptors.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from simindex import Index, IndexOptions, Recipe, open

TEXTS = [f"the ferry to island {at} leaves the harbour every morning at {at}" for at in range(99)]

OPTIONS = IndexOptions(keys=False, batch_rows=64, min_merge=0, recipe=Recipe())


@pytest.fixture(autouse=True)
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def open_files(path: Path) -> set[str]:
    links = Path("/proc/self/fd")
    found = {str(link.readlink()) for link in links.iterdir() if link.is_symlink()}
    return {name for name in found if name.startswith(str(path))}


def seen(index: Index) -> None:
    for text in TEXTS[:20]:
        index.seen_or_add(text)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_closed_index_has_no_file_open(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a.sim"
    index = open(path, "n", options=OPTIONS)
    index.append(Recipe().batch(TEXTS[20:]))
    index.commit()
    callers = [Thread(target=seen, args=(index,)) for _ in range(threads)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    seen(index)
    assert open_files(path / "segments")
    index.close()
    assert open_files(path) == set()


def test_files_that_a_commit_has_replaced_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.sim"
    with open(path, "n", options=OPTIONS) as index:
        for start in (20, 84):
            index.append(Recipe().batch(TEXTS[start:start + 64]))
            index.commit()
            seen(index)
        index.compact(full=True)
        seen(index)
        assert not [name for name in open_files(path) if "(deleted)" in name]
