"""Text to fingerprint by the definition: regex, mmh3, numpy and whole numbers; nothing of ours."""

from __future__ import annotations

import math
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from importlib.metadata import metadata
from statistics import NormalDist

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
    "አማርኛ ጽሑፍ ነው ። ខ្មែរ 𐍈𐌰𐌿𐍂 𝔘𝔫𝔦 𞤀𞤣𞤤",
    "Հայերեն տեքստ և ქართული ტექსტი",
    "தமிழ் உரை తెలుగు ಕನ್ನಡ മലയാളം සිංහල",
    "བོད་ཡིག မြန်မာစာ ລາວ ᠮᠣᠩᠭᠣᠯ ᏣᎳᎩ ߒߞߏ",
)

ODDITIES = (
    "\ud800", "\udfff", "a\ud83db", "\x00", "a\x00b", "😀👩‍👩‍👧 ok", "e\u0301tude", "\u0301",
    "\u202eright to left\u202c", "I\u0307stanbul İ", "ﬁne ŉ ΐ", "\u200bzero\u200bwidth",
    "tab\tnew\nline\x1cfile\x85next\u3000wide", "x_y __ 1_000", "²³¼", "\ufeff", "ΣΊΣΥΦΟΣ ς",
    "a" * 70, " ", "", "- -- ---", "one", "one two", "one two one two one two",
    "漢", "漢a", "a漢b字c", "1漢字2", "か\u3099か\u3099", "漢\u0301\u0302字", "\u0301漢",
    "a\u0301漢",
    "漢 字", "〆切〱〵〼々", "ｶﾞｷﾟーｰ", "ﾞﾟ", "㌀ 〇〡", "ไทย漢字한글", "漢\ud800字", "漢\x00字",
    "漢\u200d字", "漢字" * 20, "ß漢İ字ﬁ", "ᄀ\u1161\u11a8 각", "𠀀𠀁𪛖", "ⅷ漢Ⅷ", "漢_字",
)  # fmt: skip

texts = st.one_of(
    st.sampled_from(SCRIPTS + ODDITIES),
    st.text(max_size=40),
    st.text(st.characters(exclude_categories=()), max_size=30),
    st.text(st.sampled_from("abAB _-.1é\u0301ß漢字か\u3099ไ한\ud800\x00😀\n"), max_size=60),
    st.lists(st.sampled_from(SCRIPTS + ODDITIES), max_size=4).map(" ".join),
).filter(lambda text: not NEWER_FOLDS.intersection(text))

# units --------------------------------------------------------------------------------------------

FOLDED_LATER = [
    0x1C89, 0xA7CB, 0xA7CC, 0xA7CE, 0xA7D2, 0xA7D4, 0xA7DA, 0xA7DC,
    *range(0x10D50, 0x10D66), *range(0x16EA0, 0x16EB9),
]  # fmt: skip
"""Code points that Unicode 16 and 17 gave a folding; the tables' is that of 15.1."""

PYTHON_UNICODE = tuple(map(int, unicodedata.unidata_version.split(".")))
NEWER_FOLDS = frozenset(map(chr, FOLDED_LATER)) if PYTHON_UNICODE > (15, 1, 0) else frozenset()
"""What this Python folds and the tables do not: nothing up to Python 3.13."""

UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}〆〱-〵〼ーｰﾞﾟ]"
PIECES = regex.compile(rf"{UNSPACED}(?:{UNSPACED}|\p{{M}})*|(?:(?!{UNSPACED}).)+", regex.DOTALL)
PAIRED = regex.compile(UNSPACED)


def regex_unicode() -> str:
    """The Unicode version of the installed `regex`; it says so in its description only."""
    described = str(metadata("regex").json.get("description", ""))
    return max(regex.findall(r"Unicode (\d+\.\d+\.\d+)", described), default="")


def words(text: str, pairs: bool = True) -> list[str]:
    found: list[str] = []
    for word in regex.findall(r"\w+", text.casefold()):
        for piece in PIECES.findall(word) if pairs else [word]:
            if pairs and len(piece) > 1 and PAIRED.match(piece):
                found += [piece[i : i + 2] for i in range(len(piece) - 1)]
            else:
                found.append(piece)
    return found


def units(text: str, unit: str, pairs: bool = True) -> list[str]:
    return words(text, pairs) if unit == "word" else list(" ".join(text.casefold().split()))


def utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# features -----------------------------------------------------------------------------------------


def grams(found: Sequence[str], unit: str, sizes: Iterable[int]) -> Counter[bytes]:
    joiner = " " if unit == "word" else ""
    if not found:
        return Counter()
    if len(found) < min(sizes):
        return Counter([utf8(joiner.join(found))])
    return Counter(
        utf8(joiner.join(found[i : i + n])) for n in sizes for i in range(len(found) - n + 1)
    )


def features(
    text: str, unit: str, sizes: tuple[int, ...], pairs: bool = True
) -> Counter[bytes]:
    return grams(units(text, unit, pairs), unit, sizes)


def feature_hash(feature: bytes, seed: int) -> int:
    return mmh3.hash64(feature, seed=seed, signed=False)[0]


def document_frequencies(
    corpus: Iterable[str], unit: str, sizes: tuple[int, ...], pairs: bool = True
) -> Counter[bytes]:
    counted: Counter[bytes] = Counter()
    for text in corpus:
        counted.update(set(features(text, unit, sizes, pairs)))
    return counted


# weights ------------------------------------------------------------------------------------------

WEIGHTINGS = ("binary", "tf", "sublinear", "idf", "tfidf", "sublinear-tfidf", "balanced-tfidf")


def idf_steps(documents: int, containing: int) -> int:
    return round((math.log((1 + documents) / (1 + containing)) + 1) * 4096)


def shift(steps: Iterable[int]) -> int:
    """What balancing takes off, of the steps of all occurrences: by writing every tenth down."""
    tenths = sorted(step for step in [4096] * 10 + list(steps) for _ in range(10))
    n = len(tenths) // 10
    counted = tenths[n : 3 * n]
    mean = math.floor(Fraction(sum(counted), len(counted)) + Fraction(1, 2))
    half = round(math.log(2) * 4096)
    return max(0, min(mean - 4096, 2 * (mean - 4096 - half)))


def steps_of(
    found: Counter[bytes], documents: int, df: Counter[bytes], weighting: str
) -> dict[bytes, int]:
    """idf of each feature of a document, balanced where the weighting says so."""
    steps = {feature: idf_steps(documents, df[feature]) for feature in found}
    if not weighting.startswith("balanced"):
        return steps
    less = shift(steps[feature] for feature in found.elements())
    return {feature: max(4096, step - less) for feature, step in steps.items()}


def weight(count: int, idf: int, weighting: str) -> int:
    """In features, or in steps of 2^-12 where `stepped`; `idf` is in steps."""
    sublinear = round((1 + math.log(min(count, 65535))) * 4096)
    return {
        "binary": 1,
        "tf": count,
        "sublinear": sublinear,
        "idf": idf,
        "tfidf": count * idf,
        "balanced-tfidf": count * idf,
        "sublinear-tfidf": (sublinear * idf + 2048) >> 12,
    }[weighting]


def stepped(weighting: str) -> bool:
    return weighting not in ("binary", "tf", "given")


# projections --------------------------------------------------------------------------------------

PROJECTIONS = ("sign", "gaussian", "ternary")
GOLDEN = 0x9E3779B97F4A7C15


def drawn(hash_: int, index: int) -> int:
    """64 bits of chance: the hash itself, then SplitMix64 started at it."""
    if index == 0:
        return hash_
    z = (hash_ + index * GOLDEN) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def draws(hashes: np.ndarray, index: int) -> np.ndarray:
    """`drawn` of many hashes; tests compare the two."""
    if index == 0:
        return hashes
    with np.errstate(over="ignore"):
        z = hashes + np.uint64(index * GOLDEN % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@cache
def quantiles() -> np.ndarray:
    inverse = NormalDist().inv_cdf
    return np.array([round(4096 * inverse((i + 0.5) / 65536)) for i in range(65536)])


def bits_of(words_: np.ndarray) -> np.ndarray:
    """Bits of words (n,) as (n, 64), the top one first."""
    return np.unpackbits(words_.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)


def vectors(hashes: np.ndarray, projection: str, bits: int) -> np.ndarray:
    """v of each feature: whole numbers (n, bits), for gaussian in steps of 2^-12."""
    made = np.empty((len(hashes), bits), dtype=np.int32)
    if projection == "gaussian":
        for index in range(bits // 4):
            some = draws(hashes, index)
            for field in range(4):
                places = (some >> np.uint64(16 * field)) & np.uint64(0xFFFF)
                made[:, 4 * index + field] = quantiles()[places.astype(np.int64)]
        return made
    for word in range(bits // 64):
        columns = slice(64 * word, 64 * word + 64)
        if projection == "sign":
            made[:, columns] = 2 * bits_of(draws(hashes, word)).astype(np.int32) - 1
        else:
            signs = 2 * bits_of(draws(hashes, 3 * word)).astype(np.int32) - 1
            some = draws(hashes, 3 * word + 1) & draws(hashes, 3 * word + 2)
            made[:, columns] = signs * bits_of(some)
    return made


# fingerprints -------------------------------------------------------------------------------------


def words_of(sums: np.ndarray, projection: str) -> np.ndarray:
    """Sums (n, b) to fingerprints (n, b / 64)."""
    ones = sums > 0 if projection == "ternary" else sums >= 0
    packed = np.packbits(ones, axis=1)
    return np.ascontiguousarray(packed).view(">u8").astype(np.uint64)


def shown_weights(sums: np.ndarray, projection: str, weighting: str) -> np.ndarray:
    """Sums in units of feature weight, as float32."""
    scale = 4096.0 if stepped(weighting) else 1.0
    if projection == "gaussian":
        scale *= 4096.0
    return (sums.astype(np.float64) / scale).astype(np.float32)


def simhash(
    text: str,
    *,
    unit: str,
    sizes: tuple[int, ...],
    weighting: str,
    bits: int,
    seed: int = 0,
    projection: str = "sign",
    pairs: bool = True,
    documents: int = 0,
    df: Counter[bytes] | None = None,
) -> tuple[list[int], np.ndarray, int]:
    """Words of the fingerprint, weights float32 (b,), number of distinct features.

    Sums are Python's whole numbers, column by column.
    """
    found = features(text, unit, sizes, pairs)
    hashes = np.array([feature_hash(feature, seed) for feature in found], dtype=np.uint64)
    v = vectors(hashes, projection, bits)
    steps = steps_of(found, documents, df or Counter(), weighting)
    weights = [
        weight(count, steps[feature], weighting) for feature, count in found.items()
    ]
    sums = np.zeros(bits, dtype=object)
    for w, row in zip(weights, v, strict=True):
        sums += w * row.astype(object)
    return (
        words_of(sums[None], projection)[0].tolist(),
        shown_weights(sums, projection, weighting),
        len(found),
    )


def given(
    hashes: np.ndarray, weights: np.ndarray, projection: str, bits: int
) -> tuple[list[int], np.ndarray]:
    """Fingerprint and sums of a caller's weights: doubles, added in the order given."""
    sums = [0.0] * bits
    v = vectors(hashes, projection, bits).astype(np.float64)
    for w, row in zip(weights.tolist(), v.tolist(), strict=True):
        sums = [total + w * factor for total, factor in zip(sums, row, strict=True)]
    total = np.array(sums)
    return words_of(total[None], projection)[0].tolist(), shown_weights(total, projection, "given")


def everything() -> str:
    """Every code point once, in order."""
    return "".join(map(chr, range(sys.maxunicode + 1)))
