"""HTML: the text of the page is read, in its own characters, whatever the page is made of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simindex.errors import InvalidOption, MissingExtra
from simindex.inputs.foreign_formats import is_markup
from simindex.inputs.markup import EXTRACTORS, MAX_DEPTH, MAX_TAGS, extractor
from simindex.inputs.read_options import ReadOptions

Take = Callable[..., Any]

SENTENCE = "The ferry to the island leaves the harbour at seven, and comes back in the evening."
PAGE = f"""<!doctype html><html><head><title>Ferry</title><script>var x = 1;</script></head><body>
<nav><a href="/">Home</a> <a href="/news">News</a></nav><main><h1>The ferry</h1>
<p>{SENTENCE}</p><p>Tickets are sold on board, and children under ten travel free of charge.</p>
</main><footer>Copyright 2026</footer></body></html>"""


def text_in(path: Path, take: Take, page: str | bytes, **options: Any) -> str:
    path.write_bytes(page if isinstance(page, bytes) else page.encode())
    (document,), bad, _ = take(path, **options)
    assert bad == [] and document.line is None
    return str(document.text)


@pytest.mark.parametrize("name", ["a.html", "A.HTM", "a.xhtml", "a", "a.txt"])
def test_the_main_text_is_read(tmp_path: Path, take: Take, name: str) -> None:
    text = text_in(tmp_path / name, take, PAGE)
    assert SENTENCE in text
    assert not any(part in text for part in ("<p>", "News", "var x", "Copyright"))


@pytest.mark.slow
def test_trafilatura_can_be_asked_for(tmp_path: Path, take: Take) -> None:
    text = text_in(tmp_path / "a.html", take, PAGE, html="trafilatura")
    assert SENTENCE in text and "News" not in text


def test_markup_can_be_kept(tmp_path: Path, take: Take) -> None:
    assert text_in(tmp_path / "a.html", take, PAGE, html="raw") == PAGE
    _, _, intake = take(tmp_path / "a.html", html="raw")
    assert intake.markup == 1
    assert take(tmp_path / "a.html")[2].markup == 0


@pytest.mark.parametrize("html", EXTRACTORS)
@pytest.mark.slow
def test_a_page_without_an_article_gives_what_it_shows(
    tmp_path: Path, take: Take, html: str
) -> None:
    page = "<html><body><nav><a href='/'>Home</a> <a href='/map'>Map</a></nav></body></html>"
    text = text_in(tmp_path / "a.html", take, page, html=html)
    assert "Home" in text and "Map" in text


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p>Grüße aus München</p>".encode(), "Grüße aus München"),
        ("\ufeff<p>Grüße aus München</p>".encode(), "Grüße aus München"),
        ('<meta charset="iso-8859-1"><p>Grüße aus München</p>'.encode("latin-1"),
         "Grüße aus München"),
        ('<meta charset="gb18030"><p>渡轮每天早上七点离开港口</p>'.encode("gb18030"),
         "渡轮每天早上七点离开港口"),
        (b"<meta charset='utf-8'><p>bad \xff\xfe bytes \xed\xa0\x80</p>", "bad"),
    ],
)
def test_characters_are_those_of_the_page(
    tmp_path: Path, take: Take, page: bytes, expected: str
) -> None:
    text = text_in(tmp_path / "a.html", take, page)
    text.encode()  # no halves of surrogates
    assert expected in text


@pytest.mark.parametrize("html", ["resiliparse", "trafilatura"])
@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<div>" * (MAX_DEPTH + 500) + "x", f"nested more than {MAX_DEPTH:,} deep"),
        ("<div><b></div></b>" * 50_000 + "<article>" * 100_000, "nested more than"),
        ("<b>" * (MAX_TAGS + 1), f"more than {MAX_TAGS:,} tags"),
        ("<p " + "".join(f"a{n}=1 " for n in range(20_000)) + ">x", "attributes"),
        ("<p>" + "x" * (1 << 22), f"longer than {1 << 21} bytes"),
    ],
)
@pytest.mark.slow
def test_a_page_that_would_take_too_long_is_refused(
    tmp_path: Path, take: Take, page: str, reason: str, html: str
) -> None:
    (tmp_path / "a.html").write_text(page)
    documents, bad, _ = take(tmp_path / "a.html", max_record_bytes=1 << 21, html=html)
    assert documents == []
    assert len(bad) == 1 and reason in bad[0]


def test_many_shallow_elements_are_read(tmp_path: Path, take: Take) -> None:
    page = "<ol>" + "<li><div>one more line" * 3 + "".join(
        f"<li><div>line {n} of a long list</div>" for n in range(3 * MAX_DEPTH)
    )
    assert f"line {3 * MAX_DEPTH - 1} of" in text_in(tmp_path / "a.html", take, page)


def test_options_are_checked() -> None:
    with pytest.raises(InvalidOption, match="give one of resiliparse, trafilatura, raw"):
        ReadOptions(html="lynx")


@pytest.mark.parametrize("name", ["resiliparse", "trafilatura"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in [one for one in sys.modules if one.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"pip install 'simindex\[web\]'.*--html raw"):
        extractor(name)


def test_markup_is_told_by_its_first_tag() -> None:
    assert is_markup(b"\xef\xbb\xbf  <HTML lang=en>") and not is_markup(b"a <html>")


@pytest.mark.parametrize("between", [" ", "/", "='a' ", "\n"])
@pytest.mark.parametrize("extractor_name", ["resiliparse", "trafilatura"])
def test_a_tag_of_very_many_attributes_is_refused_before_it_is_parsed(
    tmp_path: Path, take: Take, between: str, extractor_name: str
) -> None:
    """Parsing takes time with the square of them."""
    named = between.join(f"a{number}" for number in range(60_000))
    (tmp_path / "a.html").write_text(f"<html><body><p>words</p><p {named}>more</p>")
    documents, (told,), _ = take(tmp_path / "a.html", html=extractor_name)
    assert documents == [] and "an element has more than 4,096 attributes" in told


@pytest.mark.parametrize("before", ['<!--<a b="-->', "<script>x = '<a b=\"'</script>"])
def test_no_comment_or_script_hides_a_tag_of_many_attributes(
    tmp_path: Path, take: Take, before: str
) -> None:
    """A quote in them ends with them for a parser; 60,000 attributes took it 8 s."""
    named = " ".join(f"a{number}" for number in range(60_000))
    (tmp_path / "a.html").write_text(f'<html><body>{before}<p {named}>more</p>">')
    documents, (told,), _ = take(tmp_path / "a.html")
    assert documents == [] and "an element has more than 4,096 attributes" in told


def test_attributes_of_many_signs_are_few(tmp_path: Path, take: Take) -> None:
    style = "color: red; " * 5000
    page = PAGE.replace("<main>", f'<main style="{style}" title="a = b / c">')
    assert SENTENCE in text_in(tmp_path / "a.html", take, page)


def test_elements_that_are_never_closed_are_refused(tmp_path: Path, take: Take) -> None:
    (tmp_path / "a.html").write_text(f"<html><body><p>{SENTENCE}</p>" + "<a><b><i><u><s>" * 60_000)
    documents, (told,), _ = take(tmp_path / "a.html")
    assert documents == [] and "are not closed" in told
    closed = f"<html><body><main><p>{SENTENCE}</p>" + "<b>bold</b> <i>it</i> " * 9000 + "</main>"
    assert SENTENCE in text_in(tmp_path / "b.html", take, closed)


@pytest.mark.parametrize("data", [b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(range(256)), b"\0" * 99])
def test_a_binary_file_is_no_page(tmp_path: Path, take: Take, data: bytes) -> None:
    (tmp_path / "a.html").write_bytes(data)
    documents, bad, _ = take(tmp_path / "a.html")
    assert documents == [] and len(bad) == 1
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.html").rename(tmp_path / "folder" / "a.html")
    documents, bad, intake = take(tmp_path / "folder")
    assert (documents, bad, intake.passed_over.total()) == ([], [], 1)


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_pages_of_two_bytes_a_character_are_read(tmp_path: Path, take: Take, coding: str) -> None:
    mark = "" if coding == "utf-16" else "\ufeff"
    page = (mark + PAGE.replace("ferry", "fähre")).encode(coding)
    assert "fähre" in text_in(tmp_path / "a.html", take, page)


@pytest.mark.parametrize("begin", ['<?xml version="1.0"?>\n', "<!-- a remark -->\n", "\ufeff  \n"])
def test_a_page_is_told_by_its_tags_behind_what_may_come_first(
    tmp_path: Path, take: Take, begin: str
) -> None:
    text = text_in(tmp_path / "page", take, begin + PAGE)
    assert SENTENCE in text and "<p>" not in text
