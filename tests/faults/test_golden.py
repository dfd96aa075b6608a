"""Golden indexes of every version are read, and written on; indexes of the future are refused."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from permissions import protect, unprivileged

import simindex
from simindex import IndexOptions
from simindex._kernels import _native
from simindex.arrays import U8
from simindex.errors import CorruptFile, FormatTooNew, FormatTooOld
from simindex.storage.files import durable, envelope, envelope_writer
from simindex.storage.files.format import FORMAT_DTYPE

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*-*.json"))

_spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
assert _spec is not None
assert _spec.loader is not None
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of a golden index, and its answers."""
    name = request.param
    copy = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    (copy / "segments").mkdir(exist_ok=True)  # git keeps no empty folder
    return copy, GOLDEN / f"{name}.json"


def test_there_are_golden_indexes_of_every_kind_of_file() -> None:
    assert {name.rpartition("-")[0] for name in NAMES} >= set(make.GOLDEN)
    found = {path.suffix for path in GOLDEN.glob("*-*/segments/*")}
    assert found >= {".rows", ".bphs", ".issl", ".dead"}
    assert all(path.stat().st_size <= 1 << 16 for path in GOLDEN.glob("?????*-1.0/*/*")
               if "index-1.0" not in str(path))


def test_golden_index_answers_as_known(golden: tuple[Path, Path]) -> None:
    assert make.judge(*golden) >= 40


def test_golden_index_is_read_where_nothing_can_be_written(
    golden: tuple[Path, Path], tree: Callable[[Path], Any]
) -> None:
    path, answers = golden
    command = unprivileged()
    protect(path)
    before = tree(path)
    try:
        finished = subprocess.run(
            [*command, sys.executable, str(GOLDEN / "make.py"), "judge", str(path), str(answers)],
            capture_output=True, text=True, timeout=120, check=False,
        )
        assert finished.returncode == 0, finished.stderr
        assert int(finished.stdout) >= 40
        assert tree(path) == before
    finally:
        for inside in [path, *path.rglob("*")]:
            inside.chmod(0o755)


def test_golden_index_is_written_on(golden: tuple[Path, Path]) -> None:
    """Deletions, rows and merges of this version upon files of that one."""
    path, answers = golden
    make.judge(path, answers, "w")
    with simindex.open(path, "w") as index:
        rows = len(index)
        first = next(iter(index.rows(chunk_rows=1)))
        batch = simindex.Batch(
            ~first.rows, ids=None if first.keys else [7_000_000], sketch=first.sketch,
            keys=None if not first.keys else [type(first.keys[0])(first.keys[0][:0]) * 1],
        )
        if first.keys:
            named: dict[str, Any] = {"keys": [first.keys[0]]}
            new = b"new" if isinstance(first.keys[0], bytes) else "new"
            batch = simindex.Batch(~first.rows, keys=[new], sketch=first.sketch)
        else:
            assert first.ids is not None
            named = {"ids": first.ids}
        gone = sum(
            part.keys == named["keys"] if first.keys else part.ids.tolist() == named["ids"].tolist()
            for part in index.rows(chunk_rows=1)
        )
        index.delete(**named)
        index.append(batch)
        index.commit()
        assert len(index) == rows + 1 - gone
        index.compact(full=True)
        assert len(index) == rows + 1 - gone
        assert index.check() == []
        assert len(index.query(~first.rows, h=0)) == 1


def test_the_generator_still_makes_such_indexes(tmp_path: Path) -> None:
    """What this version writes by it answers alike, whatever its bytes are."""
    path = make.make("plain", tmp_path)
    assert make.judge(path, GOLDEN / "plain-1.0.json") > 100


# The future --------------------------------------------------------------------------------------


def resealed(path: Path, field: str, value: int) -> None:
    """A field of FORMAT with another value, and the checksum that belongs to it."""
    record = np.frombuffer((path / "FORMAT").read_bytes(), FORMAT_DTYPE).copy()
    record[field] = value
    record["checksum"] = _native.crc32c(np.frombuffer(record.tobytes(), np.uint8)[:-4])
    (path / "FORMAT").write_bytes(record.tobytes())


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A copy of one golden index."""
    return Path(shutil.copytree(GOLDEN / "plain-1.0", tmp_path / "plain"))


def judged(path: Path, mode: Any = "r") -> int:
    """Answers of an index that holds what that one does."""
    return int(make.judge(path, GOLDEN / "plain-1.0.json", mode))


@pytest.mark.parametrize("mode", ["r", "w", "c"])
@pytest.mark.parametrize(
    ("field", "value", "error", "remedy"),
    [
        ("major", 2, FormatTooNew, "install a newer simindex"),
        ("incompatible", 1, FormatTooNew, "install a newer simindex"),
        ("incompatible", 1 << 31, FormatTooNew, "install a newer simindex"),
        ("major", 0, FormatTooOld, "build the index again"),
        ("endian", 0x04030201, CorruptFile, "byte order"),
    ],
)
def test_index_of_another_version_is_refused_by_name(
    field: str, value: int, error: type[CorruptFile], remedy: str, mode: Any, plain: Path
) -> None:
    resealed(plain, field, value)
    with pytest.raises(error, match=remedy) as caught:
        simindex.open(plain, mode)
    assert str(plain) in str(caught.value)


@pytest.mark.parametrize(("field", "value"), [("minor", 1), ("minor", 9), ("compatible", 5)])
def test_index_of_a_newer_minor_version_is_read_and_written(
    field: str, value: int, plain: Path
) -> None:
    resealed(plain, field, value)
    assert judged(plain) > 100
    assert judged(plain, "w") > 100


@pytest.mark.parametrize("bit", [0, 31])
def test_index_with_an_unknown_read_compatible_feature_is_read_only(bit: int, plain: Path) -> None:
    """A writer of this version would drop what it does not know."""
    resealed(plain, "read_compatible", 1 << bit)
    assert judged(plain) > 100
    for mode in ("w", "c"):
        with pytest.raises(FormatTooNew, match="mode 'r', or install a newer simindex") as caught:
            simindex.open(plain, mode)  # type: ignore[arg-type]
        assert str(plain) in str(caught.value)
    assert judged(plain) > 100


def future_files(path: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: int) -> None:
    """An index whose segment files are of another version, named so by the catalog, too."""
    header_page, publish = envelope_writer.header_page, durable.NewFile.publish

    def altered(
        identity: envelope.Identity, sections: Sequence[envelope_writer.SectionSpec]
    ) -> U8:
        page = header_page(identity, sections)
        page[: envelope.HEADER.itemsize].view(envelope.HEADER)[0][field] = value
        page[-4:].view("<u4")[0] = _native.crc32c(page[:-4])
        return page

    with monkeypatch.context() as patch:
        patch.setattr(envelope_writer, "header_page", altered)
        patch.setattr(
            durable.NewFile, "publish", lambda file, name, verify: publish(file, name, str)
        )
        # The writer itself cannot read what it has committed.
        options = IndexOptions(batch_rows=16)
        with suppress(CorruptFile), simindex.open(path, "n", options=options) as index:
            index.append(np.arange(20, dtype=np.uint64))


@pytest.mark.parametrize(
    ("field", "value", "error", "remedy"),
    [
        ("major", 2, FormatTooNew, "install a newer simindex"),
        ("incompatible", 4, FormatTooNew, "install a newer simindex"),
        ("major", 0, FormatTooOld, "build the index again"),
        ("endian", 0x04030201, CorruptFile, "byte order"),
    ],
)
def test_segment_of_another_version_is_refused_by_name(
    field: str, value: int, error: type[CorruptFile], remedy: str, index_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    future_files(index_path, monkeypatch, field, value)
    for mode in ("r", "w"):
        with pytest.raises(error, match=remedy) as caught:
            simindex.open(index_path, mode)  # type: ignore[arg-type]
        assert ".rows" in str(caught.value)


def test_segment_of_a_newer_minor_version_is_read_and_merged(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    future_files(index_path, monkeypatch, "minor", 3)
    with simindex.open(index_path, "w") as index:
        assert len(index.query(np.arange(20, dtype=np.uint64), h=0)) == 20
        index.delete(ids=[3])
        index.compact(full=True)
        assert len(index) == 19


def test_segment_with_an_unknown_read_compatible_feature_is_not_merged(
    index_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    future_files(index_path, monkeypatch, "read_compatible", 2)
    with simindex.open(index_path) as index:
        assert len(index.query(np.arange(20, dtype=np.uint64), h=0)) == 20
        assert index.check() == []
    with pytest.raises(FormatTooNew, match="mode 'r', or install a newer simindex"):
        simindex.open(index_path, "w")
    with simindex.open(index_path) as index:
        assert len(index) == 20
