"""Text to fingerprint by the definition, with regex, mmh3 and whole numbers; nothing of ours."""

from __future__ import annotations

import math
from collections import Counter

import mmh3
import numpy as np
import regex
from hypothesis import strategies as st

SCRIPTS = (
    "The quick brown fox jumps over the lazy dog",
    "Straßen-Fest in Gößweinstein, Ærø und Łódź",
    "Ὀδυσσεὺς ἄνδρα μοι ἔννεπε, Μοῦσα",
    "Съешь же ещё этих мягких французских булок",
    "שָׁלוֹם עֲלֵיכֶם הַכֹּל בְּסֵדֶר",
    "السَّلامُ عليكم ورحمةُ الله ١٢٣",
    "हिन्दी में लिखा हुआ पाठ क्ष त्र",
    "বাংলা ভাষায় লেখা একটি বাক্য",
    "ภาษาไทยไม่มีช่องว่างระหว่างคำ",
    "漢字とかなカナ交じり文、中文文本。",
    "한국어 문장은 띄어쓰기가 있다",
    "አማርኛ ጽሑፍ ነው ។ ខ្មែរ 𐍈𐌰𐌿𐍂 𝔘𝔫𝔦 𞤀𞤣𞤤",
)

ODDITIES = (
    "\ud800", "\udfff", "a\ud83db", "\x00", "a\x00b", "😀👩‍👩‍👧 ok", "e\u0301tude", "\u0301",
    "\u202eright to left\u202c", "I\u0307stanbul İ", "ﬁne ŉ ΐ", "\u200bzero\u200bwidth",
    "tab\tnew\nline\x1cfile\x85next\u3000wide", "x_y __ 1_000", "²³¼", "\ufeff", "ΣΊΣΥΦΟΣ ς",
    "a" * 70, " ", "", "- -- ---", "one", "one two", "one two one two one two",
)  # fmt: skip

texts = st.one_of(
    st.sampled_from(SCRIPTS + ODDITIES),
    st.text(max_size=40),
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.text(st.sampled_from("abAB _-.1é\u0301ß漢\ud800\x00😀\n"), max_size=60),
    st.lists(st.sampled_from(SCRIPTS + ODDITIES), max_size=4).map(" ".join),
)


def words(text: str) -> list[str]:
    return regex.findall(r"\w+", text.casefold())


def features(text: str, unit: str, sizes: tuple[int, ...]) -> Counter[bytes]:
    if unit == "word":
        units, joiner = words(text), " "
    else:
        units, joiner = list(" ".join(text.casefold().split())), ""
    if not units:
        return Counter()
    if len(units) < min(sizes):
        grams = [units]
    else:
        grams = [units[i : i + n] for n in sizes for i in range(len(units) - n + 1)]
    return Counter(joiner.join(gram).encode("utf-8", "surrogatepass") for gram in grams)


def feature_hash(feature: bytes, seed: int) -> int:
    return mmh3.hash64(feature, seed=seed, signed=False)[0]


def phi(hash_: int, words_: int) -> list[int]:
    """Bits of a feature, top bit of word 0 first."""
    bits: list[int] = []
    for i in range(words_):
        z = hash_
        if i > 0:
            z = (hash_ + i * 0x9E3779B97F4A7C15) % 2**64
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
            z ^= z >> 31
        bits += [(z >> (63 - j)) & 1 for j in range(64)]
    return bits


def idf_steps(documents: int, containing: int) -> int:
    return round((math.log((1 + documents) / (1 + containing)) + 1) * 4096)


def document_frequencies(corpus: list[str], unit: str, sizes: tuple[int, ...]) -> Counter[bytes]:
    counted: Counter[bytes] = Counter()
    for text in corpus:
        counted.update(set(features(text, unit, sizes)))
    return counted


def simhash(
    text: str,
    *,
    unit: str,
    sizes: tuple[int, ...],
    weighting: str,
    bits: int,
    seed: int = 0,
    corpus: list[str] | None = None,
) -> tuple[list[int], np.ndarray, int]:
    """Words of the fingerprint, weights float32 (b,), number of distinct features."""
    found = features(text, unit, sizes)
    df = document_frequencies(corpus, unit, sizes) if corpus is not None else Counter()
    total = np.zeros(bits, dtype=np.int64)
    for feature, count in found.items():
        weight = 1 if weighting == "binary" else count
        if weighting == "tfidf":
            weight *= idf_steps(len(corpus or ()), df[feature])
        signs = 2 * np.array(phi(feature_hash(feature, seed), bits // 64), dtype=np.int64) - 1
        total += signs * weight
    fingerprint = [
        int("".join("1" if w >= 0 else "0" for w in total[start : start + 64]), 2)
        for start in range(0, bits, 64)
    ]
    scale = 4096.0 if weighting == "tfidf" else 1.0
    return fingerprint, (total / scale).astype(np.float32), len(found)
