"""Texts of pages are the same, in the same order, with the same errors, whoever takes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from web_records import answer, record, response

from simindex.errors import InvalidInput
from simindex.inputs import extraction
from simindex.inputs.document import Document, Intake
from simindex.inputs.document_columns import Later
from simindex.inputs.extraction import Extraction, in_turn
from simindex.inputs.markup import MAX_ATTRIBUTES
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

pytest.importorskip("resiliparse")

Take = Callable[..., Any]

STAND_IN = """
import os, sys, time
sys.path[:] = sys.argv[2:]
from simindex.inputs import extraction, markup

def text_of(data, charset):
    text = data.decode()
    if "ends" in text:
        os.kill(os.getpid(), 9)
    if "exits" in text:
        os._exit(3)
    if "fails" in text:
        raise RuntimeError("only in this process")
    if "prints" in text:
        print("not an answer")
    if "no memory" in text:
        raise MemoryError
    if "sleeps" in text:
        time.sleep(3600)
    return f"there: {text}"

markup.EXTRACTORS["resiliparse"] = extraction.extractor = lambda *name: text_of
extraction.serve("resiliparse")
"""
"""What processes do in its place; texts that are read in this one do not begin with "there"."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes begin with the first page."""
    monkeypatch.setattr(extraction, "WORTH_S", 0.0)
    monkeypatch.setenv("SIMINDEX_THREADS", "2")


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extraction, "_COMMAND", STAND_IN)


def page(words: str) -> str:
    return f"<html><body><p>{words}, and so much more that it is a paragraph.</p></body></html>"


def folder_of(folder: Path, pages: list[str]) -> Path:
    folder.mkdir()
    for number, text in enumerate(pages):
        (folder / f"{number:04d}.html").write_text(text)
    return folder


def children(process: int | str = "self") -> set[int]:
    """Processes that one, by default this one, has begun and not waited for."""
    found: set[int] = set()
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            found.update(map(int, (thread / "children").read_text().split()))
    return found


def all_gone(processes: set[int]) -> bool:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if not any(Path(f"/proc/{process}").exists() for process in processes):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("group_bytes", [1, 1 << 18])
@pytest.mark.slow
def test_texts_and_bad_records_are_those_of_one_process(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, group_bytes: int
) -> None:
    monkeypatch.setattr(extraction, "GROUP_BYTES", group_bytes)
    tag = "<p " + " ".join(f"a{number}" for number in range(MAX_ATTRIBUTES + 1)) + ">"
    pages = [
        page(tag if number % 7 == 3 else f"words {number} " * (number % 50 + 1))
        for number in range(150)
    ]
    folder = folder_of(tmp_path / "pages", pages)
    (folder / "0060.txt").write_bytes(b"\xff no text")
    (folder / "0061.txt").write_text("a text between pages")
    beside = take(folder)
    monkeypatch.setenv("SIMINDEX_THREADS", "1")
    alone = take(folder)
    assert beside[0] == alone[0] and len(beside[0]) > 120
    assert beside[1] == alone[1] and len(beside[1]) > 20
    assert beside[2].documents == alone[2].documents
    assert beside[2].bad_records == alone[2].bad_records


def test_names_are_made_in_the_order_of_records(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of records without an address, of which some are texts that nobody has to take."""
    blocks = [
        answer(page(f"words {number}").encode(), "text/html" if number % 3 else "text/plain")
        for number in range(60)
    ]
    path = tmp_path / "a.warc"
    path.write_bytes(b"".join(
        record("response", block, Content_Type="application/http; msgtype=response")
        for block in blocks
    ))
    beside = take(path)
    monkeypatch.setenv("SIMINDEX_THREADS", "1")
    alone = take(path)
    assert beside[:2] == alone[:2]
    assert [one.key.rpartition(":")[2] for one in beside[0]] == [str(n) for n in range(1, 61)]


@pytest.mark.slow
def test_the_first_bad_record_is_raised_after_what_is_before_it(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pages", [page(f"words {number}") for number in range(9)])
    (folder / "0005a.txt").write_bytes(b"\xff no text")
    (folder / "0007.html").write_bytes(b"\0\0\0")
    found: list[str] = []
    with pytest.raises(InvalidInput, match="0005a"):
        found += (document.key for document in read([str(folder)], None, Intake(max_errors=0)))
    with closing(read([str(folder)], None, Intake(max_errors=0))) as documents:
        assert [next(documents).key.rpartition("/")[2] for _ in range(6)] == [
            f"{number:04d}.html" for number in range(6)
        ]
        with pytest.raises(InvalidInput, match="0005a"):
            next(documents)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("word", "how"), [
    ("ends", "signal 9"), ("exits", "exit code 3"), ("no memory", "exit code 1"),
])
@pytest.mark.slow
def test_a_page_on_which_the_process_ends_is_a_bad_record(
    tmp_path: Path, take: Take, word: str, how: str
) -> None:
    pages = [page("it begins"), *(page(word if number in (3, 4, 8) else f"{number}")
                                  for number in range(1, 12))]
    documents, bad, _ = take(folder_of(tmp_path / "pages", pages))
    assert [document.key[-9:-5] for document in documents] == [
        f"{number:04d}" for number in range(12) if number not in (3, 4, 8)
    ]
    assert all(document.text.startswith("there: ") for document in documents)
    assert bad == [
        f"000{number}.html: the process that read it ended ({how})" for number in (3, 4, 8)
    ]


@pytest.mark.usefixtures("stand_in")
def test_what_packages_print_or_raise_is_no_answer(tmp_path: Path, take: Take) -> None:
    pages = [page(words) for words in ("it begins", "it prints", "it fails", "it goes on")]
    documents, bad, _ = take(folder_of(tmp_path / "pages", pages))
    assert bad == []
    there = [document.text.startswith("there: ") for document in documents]
    assert there == [True, True, False, True]
    assert "it fails" in documents[2].text


@pytest.mark.parametrize("executable", ["", "/no/such/python", sys.executable])
def test_pages_are_read_here_where_no_process_begins(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    if executable == sys.executable:
        monkeypatch.setattr(extraction, "_COMMAND", "raise SystemExit(1)")
    monkeypatch.setattr(sys, "executable", executable)
    folder = folder_of(tmp_path / "pages", [page(f"words {number}") for number in range(5)])
    documents, bad, _ = take(folder)
    assert all(f"words {number}" in document.text for number, document in enumerate(documents))
    assert len(documents) == 5 and bad == []


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("begun", [0, 1])
def test_fewer_threads_than_asked_for_are_enough(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch, begun: int
) -> None:
    left = begun

    def begin(thread: threading.Thread) -> None:
        nonlocal left
        if left == 0:
            raise RuntimeError("can't start new thread")
        left -= 1
        thread.start()

    monkeypatch.setattr(extraction, "begin", begin)
    folder = folder_of(tmp_path / "pages", [page(f"words {number}") for number in range(5)])
    documents, bad, _ = take(folder)
    assert bad == [] and len(documents) == 5
    assert all(document.text.startswith("there: ") == bool(begun) for document in documents)


@pytest.mark.usefixtures("stand_in")
def test_reading_that_stops_ends_the_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extraction, "GROUP_BYTES", 1)
    before = children()
    pages = [page(words) for words in ("it begins", "it goes on", "it sleeps", "never read")]
    with closing(read([str(folder_of(tmp_path / "pages", pages))])) as documents:
        assert "it begins" in next(documents).text
        begun: set[int] = set()
        while not begun:
            begun = children() - before
    assert all_gone(begun)


READING = """
import sys
from simindex.inputs import extraction
from simindex.inputs.reading import read
extraction.WORTH_S, extraction.GROUP_BYTES = 0.0, 1
extraction._COMMAND = sys.argv[2]
for document in read([sys.argv[1]]):
    print(document.key, flush=True)
"""


@pytest.mark.usefixtures("stand_in")
@pytest.mark.slow
def test_processes_end_with_the_one_that_was_killed(tmp_path: Path) -> None:
    pages = [page("it begins"), page("it sleeps"), page("it sleeps")]
    folder = folder_of(tmp_path / "pages", pages)
    reading = subprocess.Popen(
        [sys.executable, "-c", READING, folder, extraction._COMMAND.replace("3600", "2")],
        stdout=subprocess.PIPE,
    )
    assert reading.stdout is not None
    with reading, reading.stdout:
        reading.stdout.readline()
        begun: set[int] = set()
        while len(begun) < 2 and reading.poll() is None:
            begun = children(reading.pid)
        reading.send_signal(signal.SIGKILL)
    assert begun and all_gone(begun)


def test_so_much_waits_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Items are taken ahead until so many bytes wait, and no further."""

    class Endless(Extraction):
        ahead_bytes = 1000  # type: ignore[assignment]

    taken: list[int] = []

    def items() -> Iterator[Document | Later]:
        number = 0
        while True:
            number += 1
            taken.append(number)
            document = Document(key=str(number), text="", path="-")
            yield Later(lambda found=document: found, 100)  # type: ignore[misc]

    documents = in_turn(items(), Intake(), Endless("resiliparse", 2))
    for number in range(1, 40):
        assert next(documents).key == str(number)
        assert len(taken) <= number + 10


def test_pages_are_read_here_in_groups() -> None:
    """Pages wait until there is a group of them, and then none of it goes on waiting."""
    size = 1000
    read_here: list[int] = []

    def pages() -> Iterator[Later]:
        for number in range(10_000):
            def text(number: int = number) -> Document:
                read_here.append(number)
                return Document(key=str(number), text="", path="-")

            taken.append(number)
            yield Later(text, size)

    taken: list[int] = []
    documents = in_turn(pages(), Intake(), Extraction("resiliparse", 1))
    group = extraction.GROUP_BYTES // size + 1
    for number in range(2 * group):
        assert next(documents).key == str(number)  # type: ignore[union-attr]
        assert read_here == list(range(number + 1))
        assert len(taken) == group * (number // group + 1)


def test_pages_of_a_stream_wait_for_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe may not end, and what comes next may take a while."""
    monkeypatch.setenv("SIMINDEX_THREADS", "1")
    pipe = tmp_path / "pages.warc"
    os.mkfifo(pipe)
    body = f"<html><body><p>{'some words ' * 90}</p></body></html>".encode()
    records = [
        response(f"http://x/{number}", body) for number in range(extraction.GROUP_BYTES // 2048)
    ]
    ended = threading.Event()

    def write() -> None:
        with suppress(BrokenPipeError), pipe.open("wb") as file:
            for one in records:
                file.write(one)
            file.flush()
            ended.wait(30)

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    documents: list[Document] = []

    def take() -> None:
        documents.extend(islice(read([str(pipe)]), 20))

    reading = threading.Thread(target=take, daemon=True)
    reading.start()
    reading.join(20)
    ended.set()
    writing.join(20)
    assert [document.key for document in documents] == [f"http://x/{n}" for n in range(20)]


def test_one_process_reads_here(
    tmp_path: Path, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMINDEX_THREADS", "1")
    before = children()
    documents, _, _ = take(folder_of(tmp_path / "pages", [page("words")] * 3))
    assert len(documents) == 3 and children() == before


def test_markup_is_kept_without_processes(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "pages", [page("words")] * 3)
    before = children()
    texts = [one.text for one in read([str(folder)], ReadOptions(html="raw"))]
    assert texts == [page("words")] * 3 and children() == before
