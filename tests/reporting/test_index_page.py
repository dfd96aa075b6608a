"""A page about an index."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256

import pytest
from index_report import REPORT, Page, without

from simindex.reporting.index_page import SCRIPT, SCRIPT_POLICY, write_index_page
from simindex.reporting.index_report import Clustering, IndexReport, Pairing


def page(report: IndexReport = REPORT) -> str:
    stream = io.StringIO()
    write_index_page(stream, report)
    stream.getvalue().encode()
    return stream.getvalue()


def test_hostile_names_and_texts_act_nowhere() -> None:
    text = page()
    found = Page(text)
    assert found.tags.count("script") == 1 and "img" not in found.tags
    assert all(name == "href" and value and value[0] == "#" for name, value in found.acts)
    assert not {"\u202e", "\x1b", "\x00"} & set(text)
    assert len(text) < 60_000  # a name of ten megabytes is among them


def test_only_the_own_script_may_run() -> None:
    text = page()
    inside = text[text.index("<script>") + 8 : text.index("</script>")]
    assert inside == SCRIPT
    digest = b64encode(sha256(inside.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" == SCRIPT_POLICY
    assert "default-src &#x27;none&#x27;" in text and digest in text


def test_the_page_tells_all_of_the_report() -> None:
    told = Page(page()).text
    for piece in (
        "1,200 rows", "54 kB on disk", "64 + 512", "80 clusters", "16.7% of documents",
        "60 pairs of different fingerprints, and 5 rows", "12 documents; 1,000 of 1,200",
        "equal", "2 bits", "9 more documents", "60%", "99%",
        "similarity of 0.85 asked", "recall 0.99", "psm", "in this index", "1 M", "1.0 s",
        "First 4 bits", "70", "10.0 rows on average", "78 more clusters",
    ):
        assert piece in told, piece


def test_differences_are_marked() -> None:
    text = page()
    assert "<del>two</del>" in text and "<ins>2</ins>" in text
    assert "The words are the same." in text


def test_what_is_not_known_has_no_section() -> None:
    bare = IndexReport("i.sim", "0", "now", [("a", "b")], 0, 0, 100, 0.0, 64, 0, 7)
    found = Page(page(bare))
    assert found.tags.count("section") == 1
    assert "i.sim" in found.text


@pytest.mark.parametrize(("pairing", "said"), [
    (Pairing((0, 0, 0, 0), 0), "No two rows are within 3 of 64 bits"),
    (Pairing((0, 0, 0, 0), 4), "0 pairs of different fingerprints, and 4 rows"),
    (Pairing((0, 5, 0, 0), 0, cut=True), "at least 5 pairs"),
])
def test_pairs_are_told(pairing: Pairing, said: str) -> None:
    assert said in Page(page(without(pairing=pairing))).text


def test_an_index_without_clusters_has_no_list() -> None:
    text = page(without(clustering=Clustering("star", 5, 5, 0, 0, [("1", 5, 5)])))
    assert 'id="clusters"' not in text and 'id="sizes"' not in text
    Page(text)


def test_missing_texts_are_told() -> None:
    assert "With --texts INPUT" in page(without(texts={}, texts_given=False))
    assert "none of these documents" in page(without(texts={}))


def test_without_sketches_one_column_tells_what_is_found() -> None:
    chances = [replace(chance, kept=None) for chance in REPORT.chances]
    told = page(without(chances=chances, sketch_bits=0))
    assert "asked, with the sketch" not in told
    Page(told)
