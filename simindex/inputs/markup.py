"""HTML: what a page says, without its markup, menus, scripts and advertisements.

    resiliparse    the main text; the default
    trafilatura    the main text by more rules, ten times slower
    raw            the page as it is, markup included

What the two packages find is a guess at what people would call the article of a page. A page in
which they find none gives all the text that it shows.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from simindex.inputs.document import SKIP_FILES, Document, Source, Taken, Unusable
from simindex.inputs.document_columns import Later
from simindex.inputs.extras import needed
from simindex.inputs.foreign_formats import is_binary, is_utf16
from simindex.inputs.plain_text import read_text
from simindex.inputs.streams import whole

RAW, KEEP = "raw", ", or keep the markup with --html raw"

UTF_8 = "utf-8"

DECLARED_BYTES = 1024
"""Where a page declares its character set, if it does."""

_DECLARED = re.compile(rb"(?i)<meta\b[^>]*charset")

MAX_TAGS = 1 << 19
"""Most tags of a page. Each takes up to 400 bytes of memory."""

MAX_DEPTH = 1000
"""Deepest elements within elements: browsers stop at 512. Extraction takes time with the square."""

MAX_ATTRIBUTES = 1 << 12
"""Most attributes of an element: parsing takes time with the square of them. All tags `<html>` of a
page, and all `<body>`, are one element. 64 elements may have so many, or others as much work."""

MAX_UNCLOSED = 1 << 13
"""Most elements such as `<b>` that are open at once: a parser opens each of them repeatedly."""


def read_html(stream: BinaryIO, source: Source) -> Iterator[Document | Later]:
    """The text of a page, under the source's name.

    Bad records: what is no text, a page over the limit, of more than MAX_TAGS tags, with an element
    of more than MAX_ATTRIBUTES or many of hundreds, more than MAX_UNCLOSED formatting elements that
    are not closed, or nested more than MAX_DEPTH deep.
    """
    if source.extract is None:
        yield from read_text(stream, source)
        return
    data = whole(stream, source.limit)
    if is_binary(data) and not is_utf16(data):
        if source.named:
            source.intake.bad(source.path, None, "binary file, and not HTML", hint=SKIP_FILES)
        else:
            source.intake.pass_over(source.path, "binary file")
        return
    if len(data) > source.limit:
        source.intake.bad(
            source.path, None, f"longer than {source.limit} bytes", hint=SKIP_FILES
        )
        return
    taken = source.extract(data, None)
    yield Later(lambda: _document(taken, source), max(1, len(data)))


def _document(taken: Taken, source: Source) -> Document | None:
    try:
        return Document(key=source.name, text=taken(), path=source.path)
    except Unusable as reason:
        source.intake.bad(source.path, None, str(reason), reason.remedy, hint=SKIP_FILES)
        return None


Extractor = Callable[[bytes, str | None], str]
"""The text of a page, of its bytes and the character set that was declared with it, if any."""


def extractor(name: str) -> Extractor:
    """One of EXTRACTORS; MissingExtra says how to get its package."""
    return EXTRACTORS[name]()


def _resiliparse() -> Extractor:
    with needed("reading HTML with resiliparse", extra="web", otherwise=KEEP):
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree

    def text_of(data: bytes, charset: str | None) -> str:
        encoding = _encoding_of(data, charset)
        page = _page_in(data, encoding)
        nested = _checked(page, data, encoding)
        tree = HTMLTree.parse(page)
        if nested > MAX_DEPTH:
            _require_shallow(tree)
        text: str = extract_plain_text(tree, main_content=True)
        return text if text.strip() else str(extract_plain_text(tree))

    return text_of


def _trafilatura() -> Extractor:
    more = " trafilatura lxml_html_clean" + KEEP
    with needed("reading HTML with trafilatura", extra="web", otherwise=more):
        import trafilatura
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree

    def text_of(data: bytes, charset: str | None) -> str:
        encoding = _encoding_of(data, charset)
        page = _page_in(data, encoding)
        if _checked(page, data, encoding) > MAX_DEPTH:
            _require_shallow(HTMLTree.parse(page))
        return trafilatura.extract(page) or str(extract_plain_text(page))

    return text_of


def _raw() -> Extractor:
    with needed("reading the characters of a page", extra="web"):
        import resiliparse.parse.encoding  # noqa: F401 - asked for before a page is read

    return page_of


EXTRACTORS: dict[str, Callable[[], Extractor]] = {
    "resiliparse": _resiliparse, "trafilatura": _trafilatura, RAW: _raw,
}
"""By name, the default first."""


def page_of(data: bytes, charset: str | None) -> str:
    """The characters of a page: by the declared set, its own declaration, or its bytes.

    Bytes that are UTF-8 are read as such, if no other set is declared: a guess by the frequency of
    characters is often wrong where a page has only a few that are not ASCII.

    What is no character in that set becomes U+FFFD, as in browsers, unless most of what is not
    ASCII would: then the set is wrong, and windows-1252 is tried. Unusable where there are too many
    tags.
    """
    return _page_in(data, _encoding_of(data, charset))


def _encoding_of(data: bytes, charset: str | None) -> str:
    """As the HTML standard has it: the mark at the start, the declared set, that of a meta tag.

    A page without zeros is not in UTF-16, whatever it declares: its tags would have them.
    """
    from resiliparse.parse.encoding import detect_encoding, map_encoding_to_html5

    if data.startswith(codecs.BOM_UTF8):
        return UTF_8
    declared: str | None = None
    if charset:
        declared = map_encoding_to_html5(charset, fallback_utf8=False)
    if declared is None and _DECLARED.search(data, 0, DECLARED_BYTES):
        declared = detect_encoding(data, from_html_meta=True)
    if declared and not (declared.startswith("utf-16") and b"\0" not in data):
        return declared
    return UTF_8 if _is_utf8(data) else detect_encoding(data) or UTF_8


def _is_utf8(data: bytes) -> bool:
    """Whether characters beyond ASCII are there, and all are UTF-8; the last one may be cut.

    Other sets can look like ASCII: those with escapes, and UTF-16, which has zeros.
    """
    if data.isascii() or b"\0" in data:
        return False
    try:
        codecs.getincrementaldecoder(UTF_8)().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def _page_in(data: bytes, encoding: str) -> str:
    page = _characters(data, encoding)
    if len(page) > MAX_TAGS and page.count("<") > MAX_TAGS:
        raise Unusable(f"holds more than {MAX_TAGS:,} tags")
    return page


def _characters(data: bytes, encoding: str) -> str:
    from resiliparse.parse.encoding import bytes_to_str

    page: str = bytes_to_str(data, encoding, errors="replace", fallback_encodings=(UTF_8,))
    lost = page.count("\ufffd")
    if lost and 2 * lost > len(page) - len(page.encode("ascii", "ignore")):
        page = bytes_to_str(data, encoding, errors="replace")
    return page


def _checked(page: str, data: bytes, encoding: str) -> int:
    """How many elements a page of these bytes has whose depth costs time, such as `<div>`.

    Unusable for a page whose parsing would take time with the square of its length.
    """
    import numpy as np

    from simindex._kernels import _native

    if encoding != UTF_8 or is_utf16(data):
        data = page.encode("utf-8", "surrogatepass")
    attributes, unclosed, nested = _native.page_tags(
        np.frombuffer(data, np.uint8), MAX_ATTRIBUTES
    )
    if attributes > MAX_ATTRIBUTES:
        raise Unusable(
            f"an element has more than {MAX_ATTRIBUTES:,} attributes, or many have hundreds"
        )
    if unclosed > MAX_UNCLOSED:
        raise Unusable(f"more than {MAX_UNCLOSED:,} elements such as <b> are not closed")
    return nested


def _require_shallow(tree: Any) -> None:
    """Unusable for a page whose extraction would take time with the square of its depth."""
    from resiliparse.parse.html import traverse_dom

    deepest = 0

    def enter(context: Any) -> None:
        nonlocal deepest
        deepest = max(deepest, context.depth)

    traverse_dom(tree.document, enter)
    if deepest > MAX_DEPTH:
        raise Unusable(f"elements are nested more than {MAX_DEPTH:,} deep")
