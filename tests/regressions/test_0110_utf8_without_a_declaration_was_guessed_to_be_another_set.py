"""A page or a text of a web archive that declares no character set was read in the set that its
characters looked like. One of 27 real texts in UTF-8 lost its umlauts so: where only one or two
characters are not ASCII, the guess has nothing to go by.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simindex.inputs.document import Intake
from simindex.inputs.markup import page_of
from simindex.inputs.read_options import ReadOptions
from simindex.inputs.reading import read

TEXTS = (
    "Author: martin@v.loewis.de (Martin von Löwis)\nStatus: Deferred\nType: Standards Track\n",
    "Author: Łukasz Langa <lukasz@python.org>\nStatus: Accepted\n",
    "Author: mal@lemburg.com (Marc-André Lemburg)\nStatus: Rejected\n",
    "<html><body><p>Łukasz wrote: 5 €",
    "About the charset of mails\n\nAuthor: Martin von Löwis\nStatus: Deferred\nType: Standards\n",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("charset", [None, "", "no-such-set"])
def test_utf8_is_read_as_such(text: str, charset: str | None) -> None:
    assert page_of(text.encode(), charset) == text


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_an_archive_without_a_charset_is_read_as_utf8(tmp_path: Path, text: str) -> None:
    block = text.encode()
    path = tmp_path / "a.warc"
    path.write_bytes(
        b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a/\r\n"
        b"WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>\r\n"
        b"WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: text/plain\r\n"
        b"Content-Length: %d\r\n\r\n%b\r\n\r\n" % (len(block), block)
    )
    found = list(read([str(path)], ReadOptions(html="raw"), Intake()))
    assert [one.text for one in found] == [text]


def test_a_page_that_is_cut_within_a_character_is_read_as_utf8() -> None:
    assert page_of(TEXTS[0].encode() + "ö".encode()[:1], None) == TEXTS[0] + "\ufffd"


@pytest.mark.parametrize("name", ["windows-1252", "iso-8859-2", "shift_jis"])
def test_a_declared_set_counts(name: str) -> None:
    text = "日本" if name == "shift_jis" else "Löwis"
    assert page_of(text.encode(name), name) == text
    declared = f'<meta charset="{name}"><p>'
    assert page_of(declared.encode() + text.encode(name), None) == declared + text
    assert page_of(declared.encode() + "Löwis".encode(), None) != declared + "Löwis"


def test_other_bytes_are_guessed() -> None:
    text = "Der Löwe läuft über die große Wiese und fängt Mäuse für die Löwin. " * 3
    assert page_of(text.encode("windows-1252"), None) == text
    assert page_of("日本語の文章です。".encode("iso2022_jp"), None) == "日本語の文章です。"
    assert page_of("<html>日本語の文章です。".encode("utf-16"), None) == "<html>日本語の文章です。"
