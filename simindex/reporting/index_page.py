"""A page about an index: what is in it, how near its documents are, and what a search costs.

The page is one file. All of it can be read without JavaScript; a small script, which the page's own
policy names by its digest, adds a search among the clusters.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import TextIO

from simindex.bits.digests import sha256
from simindex.reporting.charts import bars, short
from simindex.reporting.escaping import html_name, html_text
from simindex.reporting.html_page import (
    CLOSING,
    POLICY,
    facts,
    note,
    opening_of_page,
    section,
    table,
    tiles,
)
from simindex.reporting.index_report import (
    Clustering,
    Family,
    IndexReport,
    Member,
    Pairing,
    Template,
)
from simindex.reporting.side_by_side import beginning, side_by_side

SHOWN_STRUCTURES = 12

STYLE = """
nav { margin: 14px 0 0; display: flex; flex-wrap: wrap; gap: 6px 16px; font-size: 14px }
nav a, a { color: var(--accent); text-decoration: none }
nav a:hover, a:hover { text-decoration: underline }
.chart .bar { fill: var(--accent) } .chart .bar:hover { fill: var(--warm) }
.chart .grid { stroke: var(--line) }
.chart .tick { fill: var(--soft); font-size: 11.5px } .chart .value { fill: var(--ink);
  font-size: 11.5px; font-weight: 600 }
.meter { display: inline-block; width: 84px; height: 7px; border-radius: 4px; overflow: hidden;
  background: var(--line); margin-left: 8px; vertical-align: middle }
.meter i { display: block; height: 100%; background: var(--accent) }
.badge { background: var(--accent-soft); color: var(--accent); border-radius: 999px;
  padding: 1px 9px; font-size: 12px; white-space: nowrap; font-weight: 600 }
.family { border-top: 1px solid var(--line) }
.family:first-of-type { border-top: 0 }
.family > summary { display: flex; gap: 12px; align-items: baseline; padding: 9px 0;
  list-style: none }
.family > summary::-webkit-details-marker { display: none }
.family > summary::before { content: "▸"; color: var(--soft); flex: none; width: 10px }
.family[open] > summary::before { content: "▾" }
.family > summary bdi { overflow-wrap: anywhere; min-width: 0 }
.family > div { padding: 0 0 14px 22px }
.member { display: flex; gap: 10px; align-items: baseline; margin: 10px 0 0 }
.member bdi { overflow-wrap: anywhere; min-width: 0 }
.apart { flex: none; color: var(--soft); font-size: 13px; min-width: 52px;
  font-variant-numeric: tabular-nums }
.text { background: var(--code); border-radius: 8px; padding: 9px 12px; font-size: 13.5px;
  margin: 6px 0 0; overflow-wrap: anywhere }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 10px; margin: 6px 0 0 }
.sides > div { background: var(--code); border-radius: 8px; padding: 9px 12px; font-size: 13.5px;
  overflow-wrap: anywhere; min-width: 0 }
del { background: var(--bad-soft); color: var(--bad); text-decoration: none; border-radius: 3px;
  padding: 0 3px }
ins { background: var(--good-soft); color: var(--good); text-decoration: none; border-radius: 3px;
  padding: 0 3px }
.gap { color: var(--soft) }
#find { display: none; width: 100%; font: inherit; color: inherit; background: var(--page);
  border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; margin: 0 0 8px }
.scripted #find { display: block }
.warn { border-left: 3px solid var(--warm); padding-left: 12px; margin: 14px 0 0;
  color: var(--soft); font-size: 14px; overflow-wrap: anywhere }
@media (max-width: 640px) { .sides { grid-template-columns: 1fr }
  .family > div { padding-left: 0 } }
"""

SCRIPT = """
document.documentElement.classList.add("scripted");
const find = document.getElementById("find"), told = document.getElementById("told");
if (find) {
  const families = [...document.querySelectorAll(".family")];
  const texts = families.map(one => one.textContent.toLowerCase());
  find.addEventListener("input", () => {
    const wanted = find.value.trim().toLowerCase();
    let shown = 0;
    families.forEach((one, at) => {
      one.hidden = wanted !== "" && !texts[at].includes(wanted);
      shown += !one.hidden;
    });
    told.textContent = wanted === "" ? "" : shown + " of " + families.length + " clusters shown";
  });
}
"""

SCRIPT_POLICY = f"script-src 'sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}'"


def write_index_page(stream: TextIO, report: IndexReport) -> None:
    """Writes the page."""
    for piece in _pieces(report):
        stream.write(piece)


def _pieces(report: IndexReport) -> Iterator[str]:
    policy = f"{POLICY}; {SCRIPT_POLICY}"
    yield opening_of_page(f"Index {report.path}", style=STYLE, policy=policy)
    yield f"<header><h1>{html_name(report.path)}</h1>\n"
    yield f"<p>{html_text(f'simindex {report.version}, {report.made}')}</p></header>\n"
    parts = [
        ("contents", "What is in the index", _contents(report)),
        ("distances", "How far near-duplicates are apart", _pairs(report)),
        ("sizes", "How large clusters are", _sizes(report)),
        ("clusters", "The largest clusters", _families(report)),
        ("recall", "What a search finds", _expected(report)),
        ("cost", "What a search costs", _cost(report)),
        ("templates", "What is crowded", _templates(report)),
    ]
    parts = [part for part in parts if part[2]]
    links = "".join(
        f'<a href="#{anchor}">{anchor.capitalize()}</a>' for anchor, _, _ in parts
    )
    yield f"<nav>{links}</nav>\n"
    yield tiles(_figures(report))
    for text in report.notes:
        yield f'<p class="warn">{html_text(text)}</p>\n'
    for anchor, title, content in parts:
        yield section(title, content, anchor=anchor)
    yield f"<script>{SCRIPT}</script>\n{CLOSING}"


def _figures(report: IndexReport) -> Iterator[tuple[str, str]]:
    yield f"{report.rows:,}", "rows"
    yield _size(report.size_bytes), "on disk"
    if report.rows:
        yield f"{report.bytes_a_row:.1f}", "bytes a row"
    sketch = f" + {report.sketch_bits:,}" if report.sketch_bits else ""
    yield f"{report.bits:,}{sketch}", "bits, with the sketch" if sketch else "bits"
    if report.clustering is not None:
        found = report.clustering
        yield f"{found.clusters:,}", "clusters"
        if found.documents:
            share = 1 - found.alone / found.documents
            yield f"{100 * share:.3g}%", "of documents have a near-duplicate"


def _contents(report: IndexReport) -> str:
    made = facts([(name, html_text(value)) for name, value in report.facts])
    if report.segments:
        rows = [
            (
                html_text(one.name), f"{one.rows:,}",
                "" if one.size_bytes is None else _size(one.size_bytes),
            )
            for one in report.segments
        ]
        made += "<h3>Files</h3>\n" + table(("file", "rows", "size"), rows, numbers=(1, 2))
    if report.structures:
        sizes = [
            (f"<code>{html_text(name)}</code>", _size(size)) for name, size in report.structures
        ]
        made += "<h3>Structures</h3>\n" + table(
            ("structure", "beside the rows"), sizes, numbers=(1,)
        )
    return made


def _pairs(report: IndexReport) -> str:
    found: Pairing | None = report.pairing
    if found is None:
        return ""
    total = sum(found.by_distance)
    if not total and not found.equal_rows:
        near = report.near
        none = f"are within {report.h} of {report.bits:,} bits" if near is None else (
            f"have a {near} or more"
        )
        return f'<p class="soft">No two rows {none}.</p>\n'
    values = [(str(h), number) for h, number in enumerate(found.by_distance)][1:]
    by, across, heading = "distance", "bits that differ", "bits"
    different = "fingerprints"
    if report.near is not None:
        values = list(found.by_similarity)
        by, across = "estimated similarity", f"{report.near.measure}, estimated"
        heading = report.near.measure
        if report.sketch_bits:
            different = "sketches"
    more = "at least " if found.cut else ""
    made = bars(values, told=f"{more}{total:,} pairs by {by}", across=across) if total else ""
    if report.near is not None:
        differ = f"they differ in at most {report.near.most} of {report.near.bits:,} bits"
        made += note(
            f"Near-duplicates have a {report.near} or more: {differ}, and were candidates within "
            f"{report.h} of {report.bits:,}." if report.sketch_bits else
            f"The radius for a {report.near} decides, because there are no sketches. "
            f"Near-duplicates are within it: {differ}. Some of them are less similar."
        )
    made += note(
        f"{more}{total:,} pairs of different {different}, and {found.equal_rows:,} rows whose "
        f"{different[:-1]} an earlier row has, which are not drawn."
    )
    if total:
        made += _folded("The numbers", table(
            (heading, "pairs"), [(label, f"{number:,}") for label, number in values],
            numbers=(0, 1),
        ))
    return made


def _sizes(report: IndexReport) -> str:
    found: Clustering | None = report.clustering
    if found is None or not found.clusters:
        return ""
    sizes = [(label, clusters) for label, clusters, _ in found.sizes if label != "1"]
    rows = [
        (html_text(label), f"{clusters:,}", f"{documents:,}")
        for label, clusters, documents in found.sizes
    ]
    reach = "within the radius of" if report.near is None else "near enough to"
    how = f"Each document is {reach} the representative." if found.mode == "star" else (
        "Chains of near-duplicates join documents that may be far apart."
    )
    return (
        bars(sizes, told=f"{found.clusters:,} clusters by their size", across="documents")
        + note(
            f"{found.clusters:,} clusters of at most {found.largest:,} documents; {found.alone:,} "
            f"of {found.documents:,} documents have no near-duplicate. {how}"
        )
        + _folded("The numbers", table(
            ("documents", "clusters", "documents in them"), rows, numbers=(1, 2)
        ))
    )


def _families(report: IndexReport) -> str:
    found = report.clustering
    if found is None or not found.families:
        return ""
    made = (
        '<input id="find" type="search" placeholder="Find a name or a word" '
        'aria-label="Find among the clusters">\n<p class="note" id="told" role="status"></p>\n'
    )
    made += "".join(
        _family(family, report, opened=number == 0) for number, family in enumerate(found.families)
    )
    if report.texts:
        made += note("On the left is the document that names the cluster, on the right the other.")
    left = found.clusters - len(found.families)
    if left:
        more = "1 more cluster" if left == 1 else f"{left:,} more clusters"
        made += note(f"{more}: simindex clusters prints all.")
    if not report.texts_given:
        made += note("With --texts INPUT the page shows what differs within a cluster.")
    elif not report.texts:
        made += note("The inputs of --texts have none of these documents.")
    return made


def _family(family: Family, report: IndexReport, *, opened: bool) -> str:
    first, *others = family.members
    text = report.texts.get(first.name)
    inner = [] if text is None else [f'<div class="text" dir="auto">{beginning(text)}</div>']
    for member in others:
        inner.append(
            f'<div class="member"><span class="apart">{_apart(member)}</span>'
            f"{html_name(member.name)}</div>"
        )
        theirs = report.texts.get(member.name)
        if text is not None and theirs is not None:
            same = theirs.split() == text.split()
            inner.append(
                '<p class="note">The words are the same.</p>' if same
                else side_by_side(text, theirs)
            )
    left = family.size - len(family.members)
    if left:
        more = "1 more document" if left == 1 else f"{left:,} more documents"
        inner.append(f'<p class="note">{more}</p>')
    return (
        f'<details class="family"{" open" if opened else ""}><summary>'
        f'<span class="badge">{family.size:,}</span>{html_name(first.name)}</summary>'
        f"<div>{''.join(inner)}</div></details>\n"
    )


def _apart(member: Member) -> str:
    distance = member.distance
    if not distance:
        return "equal"
    if member.similarity is not None:
        return f"{member.similarity:.3f}"
    return f"{distance} bit{'s' if distance > 1 else ''}"


def _expected(report: IndexReport) -> str:
    if not report.chances:
        return ""
    sketched = any(chance.kept is not None for chance in report.chances)
    headings = ["similarity", f"within {report.h} of {report.bits:,} bits"]
    if sketched:
        near = report.near or f"similarity of {report.gate_similarity:g}"
        headings.append(f"{near} asked, with the sketch")
    rows = [
        (
            f"{chance.similarity:.2f}", _share(chance.within),
            *([_share(chance.kept or 0.0)] if sketched else []),
        )
        for chance in report.chances
    ]
    made = table(headings, rows)
    made += note(
        "The share of pairs of a similarity, a cosine, that is found, if bits differ independently "
        f"of each other. Of {report.rows:,} unrelated rows, about {_few(report.strangers)} are "
        f"within {report.h} bits of a query if each bit is as often 0 as 1; rows with common "
        "words are more."
    )
    if report.audit is not None:
        made += note(f"Measured on this index: {report.audit}")
    return made


def _cost(report: IndexReport) -> str:
    if not report.costs:
        return ""
    shown = list(report.costs)[:SHOWN_STRUCTURES]
    rows = [
        (
            f"<code>{html_text(cost.method)}</code>"
            + (' <span class="badge">in this index</span>' if cost.here else ""),
            f"{cost.recall:g}", f"{cost.bytes_a_row:.1f}", _size(cost.memory_bytes),
            short(cost.queries_s), _seconds(cost.batch_s),
        )
        for cost in shown
    ]
    whose = "measured on this machine" if report.measured else "those of a usual machine"
    return table(
        ("structure", "recall", "bytes a row", "memory", "queries a second", "a million queries"),
        rows, numbers=(1, 2, 3, 4, 5),
    ) + note(
        f"Predicted by the planner for {report.rows:,} rows, within {report.h} bits, on one "
        f"thread, with tables in memory. The constants are {whose}."
    )


def _templates(report: IndexReport) -> str:
    made = ""
    if report.equal:
        made += "<h3>Fingerprints of most rows</h3>\n" + _listed(report.equal)
    if report.crowded:
        made += (
            f"<h3>First {report.header_bits} bits of most rows</h3>\n" + _listed(report.crowded)
            + note(
                f"A bucket has {report.rows_per_header:.1f} rows on average. Buckets with many "
                "more come of templates: pages that share most of their words."
            )
        )
    return made


def _listed(templates: Sequence[Template]) -> str:
    rows = []
    for one in templates:
        names = "<br>".join(map(html_name, one.names))
        rows.append((f"<code>{html_text(one.value)}</code>", f"{one.rows:,}", names))
    named = any(one.names for one in templates)
    headings = ("bits", "rows", "such as") if named else ("bits", "rows")
    return table(headings, [row[: len(headings)] for row in rows], numbers=(1,))


def _folded(title: str, content: str) -> str:
    return f'<details><summary class="soft">{html_text(title)}</summary>{content}</details>\n'


def _share(share: float) -> str:
    percent = 100 * share
    told = f"{percent:.0f}%" if 10 <= percent < 99.5 or percent in (0, 100) else f"{percent:.2g}%"
    if 99.5 <= percent < 100:
        told = f"{percent:.2f}%"
    return (
        f'<span class="mono">{told}</span><span class="meter"><i style="width:{percent:.0f}%">'
        "</i></span>"
    )


def _few(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _size(size_bytes: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size_bytes >= unit:
            scaled = size_bytes / unit
            return f"{scaled:.1f} {name}" if scaled < 10 else f"{scaled:,.0f} {name}"
    return f"{size_bytes:.0f} bytes"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"
