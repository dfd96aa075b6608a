"""Foreign text within a page: what could act, reorder or flood it is made visible or cut.

    &lt;script&gt;    markup is escaped
    \\u202e           controls, and characters that turn the direction of a line, show their number
    abc…xyz          a long name keeps its beginning and its end

Names come from anybody. A page shows them within <bdi>, so that their direction ends with them.
"""

from __future__ import annotations

import re

NAME_CHARACTERS = 160
"""Of a name, at most so many are shown."""

_UNSEEN = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_BREAKS = "[\t\r\n]"


def visible(text: str) -> str:
    """A text whose controls are shown as ``\\u202e``; tabs and line ends stay."""
    return re.sub(_UNSEEN, lambda found: f"\\u{ord(found[0]):04x}", text)


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, without its middle."""
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head):]}"


def plain_name(name: str, most: int = NAME_CHARACTERS) -> str:
    """A name on one line, for a message."""
    return re.sub(_BREAKS, lambda found: ascii(found[0])[1:-1], visible(shortened(name, most)))


def html_text(text: str) -> str:
    """A text for the content of an element, or for an attribute in quotation marks."""
    return _escaped(visible(text))


def html_name(name: str, most: int = NAME_CHARACTERS) -> str:
    """A name as an element of a page."""
    return f"<bdi>{_escaped(plain_name(name, most))}</bdi>"


def _escaped(text: str) -> str:
    from html import escape  # loads all names of characters, which `diff` and a start need not

    return escape(text)
