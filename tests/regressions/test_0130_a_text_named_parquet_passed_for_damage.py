"""A file of texts named `a.parquet` was called damaged, and so was one that a web server or a pipe
could not give in parts, though nothing was wrong with its bytes."""

from __future__ import annotations

import random
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from simindex.inputs.document import Intake
from simindex.inputs.reading import read

pa = pytest.importorskip("pyarrow", reason="the extra arrow is not installed")


def refused(path: Path | str) -> str:
    said: list[str] = []
    intake = Intake(max_errors=1, report=lambda record: said.append(str(record)))
    assert list(read([str(path)], intake=intake)) == []
    assert len(said) == 1
    return said[0]


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"plain words in a file", "text"),
        (b'{"id": "a", "text": "some words"}\n', "JSON"),
        (b"<!doctype html><html><body><p>some words</p></body></html>", "HTML"),
    ],
)
@pytest.mark.parametrize(
    ("suffix", "kind"),
    [("parquet", "a Parquet file"), ("arrow", "an Arrow file"), ("feather", "an Arrow file")],
)
def test_what_looks_like_something_else_is_named(
    tmp_path: Path, content: bytes, looks: str, suffix: str, kind: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content)
    assert f"a.{suffix}: not {kind}: it looks like {looks}" in refused(path)


@pytest.mark.parametrize(("suffix", "head"), [("parquet", b"PAR1"), ("arrow", b"ARROW1\0\0")])
def test_what_begins_as_one_is_damaged(tmp_path: Path, suffix: str, head: bytes) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(head + b"words " * 20)
    assert f"a.{suffix}: damaged: " in refused(path)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


def test_a_server_that_gives_no_parts_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec", reason="the extra remote is not installed")
    pytest.importorskip("aiohttp", reason="the extra remote is not installed")
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    texts = [random.Random(n).randbytes(1000).hex() for n in range(1000)]
    parquet.write_table(pa.table({"text": texts}), "a.parquet", compression="none")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        said = refused(f"http://127.0.0.1:{server.server_address[1]}/a.parquet")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert "a.parquet: cannot be read: " in said
    assert "range requests" in said and "damaged" not in said
