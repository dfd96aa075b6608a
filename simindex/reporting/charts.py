"""Bars as SVG within a page: they have the colours of the page, and labels of a fixed size.

    12 M  |    ▇
          |  ▇ ▇ ▂
       0  +--------
             1 2 3

Places across are shares of the width, so that a narrow page shows the same bars closer together.
"""

from __future__ import annotations

from collections.abc import Sequence

from simindex.reporting.escaping import html_text

HEIGHT, TOP, BOTTOM = 190, 18, 40
"""Pixels: of all, above the highest bar, and below the axis for labels."""
LEFT_SHARE = 8.0
"""Of the width, for the labels of the axis, in per cent."""
MOST_LABELLED = 9
"""With more bars their numbers would touch; they are in the table then."""


def short(number: float) -> str:
    """`12`, `3.4 k`, `120 M`: three digits at most."""
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            scaled = number / size
            return (f"{scaled:.1f}".removesuffix(".0") if scaled < 10 else f"{scaled:.0f}") + letter
    return f"{number:.0f}"


def rounded(number: int) -> int:
    """The next number of the axis: 2, 4, 6, 10, 20, 40 and so on, whose half is whole."""
    size = 1
    while True:
        for step in (2, 4, 6):
            if number <= step * size:
                return step * size
        size *= 10
        if number <= size:
            return size


def bars(values: Sequence[tuple[str, int]], *, told: str, across: str) -> str:
    """Bars with their labels, as markup; empty if there are none.

    `told` says what the chart shows, for those who do not see it, and `across` what the labels are.
    """
    if not values:
        return ""
    most = rounded(max(value for _, value in values))
    floor = HEIGHT - BOTTOM
    each = (100 - LEFT_SHARE) / len(values)
    width = min(each * 0.72, 9.0)
    pieces = []
    for share in (1.0, 0.5, 0.0):
        y = floor - share * (floor - TOP)
        pieces.append(
            f'<line x1="{LEFT_SHARE}%" x2="100%" y1="{y:.0f}" y2="{y:.0f}" class="grid"/>'
            f'<text x="{LEFT_SHARE - 1.2}%" y="{y + 4:.0f}" class="tick" text-anchor="end">'
            f"{short(share * most)}</text>"
        )
    for number, (label, value) in enumerate(values):
        middle = LEFT_SHARE + (number + 0.5) * each
        tall = max(1.5, value / most * (floor - TOP)) if value else 0.0
        pieces.append(
            f'<rect x="{middle - width / 2:.2f}%" width="{width:.2f}%" y="{floor - tall:.1f}" '
            f'height="{tall:.1f}" rx="2" class="bar"><title>{html_text(label)}: {value:,}</title>'
            "</rect>"
            f'<text x="{middle:.2f}%" y="{floor + 16}" class="tick" text-anchor="middle">'
            f"{html_text(label)}</text>"
        )
        if len(values) <= MOST_LABELLED:
            pieces.append(
                f'<text x="{middle:.2f}%" y="{floor - tall - 5:.1f}" class="value" '
                f'text-anchor="middle">{short(value)}</text>'
            )
    pieces.append(
        f'<text x="{LEFT_SHARE + (100 - LEFT_SHARE) / 2}%" y="{HEIGHT - 6}" class="tick" '
        f'text-anchor="middle">{html_text(across)}</text>'
    )
    return (
        f'<svg class="chart" height="{HEIGHT}" role="img" aria-label="{html_text(told)}">'
        f"{''.join(pieces)}</svg>\n"
    )
