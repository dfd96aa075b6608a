"""Files of other systems are read as those of this one, and what these systems raise is typed."""

from __future__ import annotations

import gzip
import io
import json
import random
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fsspec
import pytest
from web_records import gzipped, record

from simindex.errors import InvalidInput, MissingExtra
from simindex.inputs.paths import expanded
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read, require_inputs, size_bytes
from simindex.inputs.remote_files import is_pattern

Take = Callable[..., Any]

TEXTS = ["The ferry leaves at six.", "The train leaves at seven.", "The bus leaves at nine."]
LINES = b"".join(json.dumps({"id": text[4], "text": text}).encode() + b"\n" for text in TEXTS)


@pytest.fixture
def memory() -> Iterator[Callable[[str, bytes], str]]:
    """Stores files in the memory of this process, and says their addresses."""
    files = fsspec.filesystem("memory")

    def put(name: str, data: bytes) -> str:
        files.pipe(f"/{name}", data)
        return f"memory://{name}"

    yield put
    files.store.clear()
    files.pseudo_dirs[:] = [""]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address that a web server gives its files at."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def texts(documents: list[Any]) -> list[str]:
    return [document.text for document in documents]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_formats_and_compressions_are_told_as_of_files(
    memory: Callable[[str, bytes], str], take: Take, suffix: str
) -> None:
    pack = gzip.compress if suffix else bytes
    wet = record("conversion", TEXTS[0].encode(), Content_Type="text/plain")
    lines = memory(f"a.jsonl{suffix}", pack(LINES))
    archive = memory(f"deep/b.wet{suffix}", gzipped(wet) if suffix else wet)
    documents, bad, intake = take(lines, archive, memory(f"c.txt{suffix}", pack(b"One text.")))
    assert bad == [] and texts(documents) == [*TEXTS, TEXTS[0], "One text."]
    assert [document.key for document in documents] == [
        "f", "t", "b", f"memory://deep/b.wet{suffix}:1", f"memory://c.txt{suffix}",
    ]
    assert intake.read_bytes == size_bytes([lines, archive, f"memory://c.txt{suffix}"])


def test_parquet_is_read_where_it_is(
    memory: Callable[[str, bytes], str], take: Take, tmp_path: Path
) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": TEXTS}), tmp_path / "a.parquet")
    address = memory("a.parquet", (tmp_path / "a.parquet").read_bytes())
    documents, bad, _ = take(address)
    assert bad == [] and texts(documents) == TEXTS


def test_folders_and_patterns(memory: Callable[[str, bytes], str], take: Take) -> None:
    for name in ("a.txt", "b.md", "sub/c.txt", "sub/d.log"):
        memory(f"folder/{name}", name.encode())
    documents, bad, intake = take("memory://folder", "memory://folder/a.txt", include=["*.txt"])
    assert bad == [] and texts(documents) == ["a.txt", "sub/c.txt"]
    assert intake.passed_over == {"reached before": 1}
    documents, _, _ = take("memory://folder", exclude=["sub"])
    assert texts(documents) == ["a.txt", "b.md"]
    assert expanded(["memory://folder/**/*.txt"]) == (
        "memory:///folder/a.txt", "memory:///folder/sub/c.txt"
    )
    with pytest.raises(InvalidInput, match="no file or folder matches"):
        expanded(["memory://folder/*.csv"])


@pytest.mark.slow
def test_files_of_a_web_server_are_read(
    served: tuple[Path, str], take: Take, tmp_path: Path
) -> None:
    folder, address = served
    noise = json.dumps({"text": random.Random(7).randbytes(2 << 20).hex()}).encode() + b"\n"
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(LINES + noise + LINES, 1))
    (folder / "page.html").write_text("<html><body><a href='a.jsonl.gz'>A link</a></body></html>")
    first = next(read([f"{address}/a.jsonl.gz"], ReadOptions()))
    assert first.text == TEXTS[0]
    documents, bad, _ = take(f"{address}/a.jsonl.gz?version=2", f"{address}/page.html", html="raw")
    assert bad == [] and len(documents) == 8 and "A link" in documents[-1].text


@pytest.mark.slow
def test_an_answer_that_breaks_off_is_a_bad_record(take: Take) -> None:
    class Short(_Quiet):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(LINES) + 9))
            self.end_headers()
            self.wfile.write(LINES)

        do_HEAD = do_GET  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Short)
    threading.Thread(target=server.serve_forever).start()
    documents, bad, _ = take(f"http://127.0.0.1:{server.server_port}/a.jsonl")
    server.shutdown()
    server.server_close()
    assert set(texts(documents)) <= set(TEXTS) and len(bad) == 1
    assert "cannot be read: ClientPayloadError" in bad[0]


def test_damage_is_a_bad_record(memory: Callable[[str, bytes], str], take: Take) -> None:
    documents, bad, _ = take(memory("a.jsonl.gz", gzip.compress(LINES)[:-9]))
    assert texts(documents) == TEXTS and len(bad) == 1 and "truncated" in bad[0]


@pytest.mark.slow
def test_what_is_not_there_is_named(served: tuple[Path, str]) -> None:
    for path in ("memory://none.txt", f"{served[1]}/none.txt"):
        with pytest.raises(InvalidInput, match=r"none\.txt: no such file or folder") as caught:
            require_inputs([path])
        assert caught.value.data["path"] == path


def test_errors_of_the_other_system_are_typed(take: Take, memory: Callable[..., str]) -> None:
    with pytest.raises(
        InvalidInput, match=r"http://127\.0\.0\.1:1/a\.txt: cannot be opened: ClientConnectorError"
    ):
        require_inputs(["http://127.0.0.1:1/a.txt"])
    with pytest.raises(InvalidInput, match="zebra://a: cannot be opened: ValueError: Protocol"):
        require_inputs(["zebra://a"])


def test_a_file_that_fails_while_it_is_read_is_a_bad_record(
    memory: Callable[[str, bytes], str], take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = memory("a.jsonl", LINES)

    class Failing:
        size = len(LINES)

        def read(self, size: int) -> bytes:
            raise RuntimeError("token\nexpired")

        def seekable(self) -> bool:
            return True

        def close(self) -> None:
            """Nothing."""

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "open", lambda *a, **k: Failing())
    documents, bad, _ = take(address)
    assert documents == []
    assert len(bad) == 1 and "cannot be read: RuntimeError: token expired" in bad[0]


def test_a_file_that_ends_early_is_a_bad_record(
    memory: Callable[[str, bytes], str], take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = memory("a.jsonl", LINES)

    class Short(io.BytesIO):
        size = len(LINES) + 7

    monkeypatch.setattr(
        type(fsspec.filesystem("memory")), "open", lambda *a, **k: Short(LINES)
    )
    documents, bad, _ = take(address)
    assert texts(documents) == TEXTS
    assert len(bad) == 1 and f"it ended after {len(LINES)} of {len(LINES) + 7} bytes" in bad[0]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtra, match=r"pip install 'simindex\[remote\]'"):
        require_inputs(["memory://a.txt"])


@pytest.mark.parametrize(("address", "module", "package"), [
    ("s3://bucket/a.txt", "s3fs", "s3fs"), ("smb://host/a.txt", "smbclient", "smbprotocol"),
    ("https://example.org/a.txt", "aiohttp", ""),
])
def test_the_package_of_a_kind_of_address_is_named(
    monkeypatch: pytest.MonkeyPatch, address: str, module: str, package: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("fsspec.implementations")]:
        monkeypatch.delitem(sys.modules, name)
    loaded = sys.modules["fsspec.registry"]._registry
    for kind in list(loaded):
        monkeypatch.delitem(loaded, kind)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as missing:
        require_inputs([address])
    assert missing.value.remedy == f"pip install 'simindex[remote]' {package}".rstrip()


def test_a_star_in_a_query_is_no_pattern() -> None:
    assert is_pattern("https://example.org/*.txt") and is_pattern("memory://a?b*")
    assert not is_pattern("https://example.org/a.txt?x=1&y=*")
