"""Golden indexes: `make.py make NAME` writes one that is missing, `make.py judge PATH` reads one.

    tests/golden/<name>-1.0/          the index, as that version of the format left it
    tests/golden/<name>-1.0.json      what it holds, and what it answers, by comparing all rows

They are written once and never anew: what a later version reads is what that version wrote. A new
version of the format gets indexes of its own beside them.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

import simindex
from simindex import Batch, IndexOptions, Recipe

HERE = Path(__file__).resolve().parent

VERSION = "1.0"

Rows = list[tuple[tuple[int, ...], Any]]
"""Live rows: words and name."""

TEXTS = [
    "the quick brown fox jumps over the lazy dog again and again",
    "the quick brown fox jumped over the lazy dog again and again",
    "a completely different sentence about the storage of fingerprints",
    "a completely different sentence about the storing of fingerprints",
    "Straße und Gruß: eine kurze deutsche Zeile mit Umlauten über Öl",
    "nothing here resembles anything else in this small collection of texts",
]


def family(seed: int, count: int, bits: int) -> list[tuple[int, ...]]:
    """Fingerprints of which many are near to each other, two of them equal."""
    rng = random.Random(seed)
    centres = [[rng.getrandbits(64) for _ in range(bits // 64)] for _ in range(4)]
    rows = []
    for place in range(count):
        words = list(centres[place % 4])
        for _ in range(place % 5):
            bit = rng.randrange(bits)
            words[bit // 64] ^= 1 << (bit % 64)
        rows.append(tuple(words))
    return rows


def batch(rows: list[tuple[int, ...]], names: list[Any], *, weighted: bool = False) -> Batch:
    """Rows with ids or keys, and with weights whose signs are the bits."""
    values = np.array(rows, np.uint64)
    named: dict[str, Any] = {"ids": names} if isinstance(names[0], int) else {"keys": names}
    weights = None
    if weighted:
        octets = values.astype(">u8").view(np.uint8).reshape(len(values), -1)
        bits = np.unpackbits(octets, axis=1)
        size = np.linspace(0.5, 4, bits.shape[1], dtype=np.float32)
        weights = np.where(bits == 1, size, -size)
    return Batch(values, weights=weights, **named)


def small(**others: Any) -> IndexOptions:
    """Options under which a few rows make segments, and others stay pending."""
    return IndexOptions(**{"batch_rows": 96, "min_merge": 0, "reservoir_rows": 4, **others})


def filled(path: Path, options: IndexOptions, rows: Rows) -> Rows:
    """Two segments, one of them merged, a pending run and a tombstone; returns the live rows."""
    words, names = [row[0] for row in rows], [row[1] for row in rows]
    with simindex.open(path, "n", options=options) as index:
        for start in (0, 12):
            index.append(batch(words[start : start + 12], names[start : start + 12]))
            index.commit()
        deletes = "keys" if options.keys else "ids"
        index.delete(**{deletes: names[3:5]})
        index.compact(full=True)
        index.append(batch(words[24:36], names[24:36], weighted=True))
        index.commit()
        index.append(batch(words[36:], names[36:]))
        index.delete(**{deletes: [names[13], names[30]]})
    return [row for place, row in enumerate(rows) if place not in (3, 4, 13, 30)]


def plain(path: Path) -> Rows:
    """Usual options: three permuted tables; ids at the ends of their range."""
    ids = [*range(36), 2**63, 2**64 - 2, 2**64 - 1]
    return filled(path, small(), list(zip(family(1, 39, 64), ids, strict=True)))


def octets(path: Path) -> Rows:
    """Keys that are bytes, one of them empty, one long."""
    keys = [b"", *(b"http://example.org/%d\xff" % i for i in range(37)), b"x" * 80]
    return filled(path, small(keys="bytes"), list(zip(family(2, 39, 64), keys, strict=True)))


def lists(path: Path) -> Rows:
    """Slice lists, and tables of a nested design."""
    options = small(structures=("psm", "bphs:nested=4x4", "issl"))
    return filled(path, options, list(zip(family(3, 39, 64), range(39), strict=True)))


def wide(path: Path) -> Rows:
    """Fingerprints of 256 bits, with tables and slice lists."""
    options = small(bits=256, structures=("psm", "bphs:G=4,g=1", "issl:w=8"))
    return filled(path, options, list(zip(family(4, 39, 256), range(39), strict=True)))


def deleted(path: Path) -> Rows:
    """A file of tombstones of keys, and a run in the catalog."""
    keys = [f"http://example.org/{number}" for number in range(39)]
    rows = list(zip(family(5, 39, 64), keys, strict=True))
    with simindex.open(path, "n", options=small(batch_rows=32, keys="str")) as index:
        index.append(batch([words for words, _ in rows], keys))
        index.commit()
        for doomed in (keys[3:12], keys[20:21]):
            index.delete(keys=doomed)
            index.commit()
    return [row for place, row in enumerate(rows) if not (3 <= place < 12 or place == 20)]


def recipe(path: Path) -> Rows:
    """Texts, by a recipe that has learned idf; keys that are str."""
    learned = Recipe(weighting="tfidf", ngram=(1, 2)).fit(TEXTS)
    keys = [f"text {number}" for number in range(len(TEXTS))]
    made = learned.batch(TEXTS, keys=keys)
    with simindex.open(path, "n", options=small(keys=True, recipe=learned)) as index:
        index.append(made)
    return [(tuple(words), key) for words, key in zip(made.rows.tolist(), keys, strict=True)]


def sketch_of(words: list[tuple[int, ...]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Three words that say whose they are."""
    return np.array([[row[0] ^ place for place in (1, 2, 3)] for row in words], np.uint64)


def sizes_of(words: list[tuple[int, ...]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Numbers of features that say whose they are: powers of two, which a byte has exactly."""
    return np.array([1 << row[0] % 31 for row in words], np.int64)


def sketched(path: Path) -> Rows:
    """Sketches of 192 bits, in a segment and in a pending run; keys that are str."""
    keys = [f"http://example.org/{number}" for number in range(39)]
    rows = list(zip(family(6, 39, 64), keys, strict=True))
    words = [row for row, _ in rows]
    with simindex.open(path, "n", options=small(keys="str", sketch_bits=192)) as index:
        for part in (slice(0, 30), slice(30, 39)):
            index.append(Batch(
                np.array(words[part], np.uint64), keys=keys[part], sketch=sketch_of(words[part]),
                features=sizes_of(words[part]),
            ))
            index.commit()
    return rows


GOLDEN: dict[str, Callable[[Path], Rows]] = {
    "plain": plain, "bytes": octets, "lists": lists, "wide": wide, "recipe": recipe,
    "deleted": deleted, "sketched": sketched,
}


def named(name: Any) -> Any:
    """A name as JSON holds it."""
    return name.hex() if isinstance(name, bytes) else name


def expected(rows: Rows) -> dict[str, Any]:
    """Rows, and what queries find among them, by comparing all."""
    queries = [words for words, _ in rows[::5]]
    queries += [tuple(word ^ 5 for word in words) for words, _ in rows[1::7]]

    def apart(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        return sum((x ^ y).bit_count() for x, y in zip(a, b, strict=True))

    return {
        "rows": sorted([list(words), named(name)] for words, name in rows),
        "queries": [list(words) for words in queries],
        "apart": [
            [[apart(query, words), named(name)] for words, name in rows] for query in queries
        ],
    }


def tighten(path: Path) -> None:
    """Leaves the catalog's pages in use, which LMDB copies, and no lock files."""
    catalog, copy = path / "catalog", path / "copy"
    copy.mkdir()
    with lmdb.open(str(catalog), readonly=True, lock=False, lib_version=0) as environment:
        environment.copy(str(copy), compact=True)
    (copy / "data.mdb").replace(catalog / "data.mdb")
    copy.rmdir()
    (path / "LOCK").unlink()
    (catalog / "lock.mdb").unlink()


def make(name: str, parent: Path = HERE) -> Path:
    """Writes a golden index and its answers, where there are none."""
    path = parent / f"{name}-{VERSION}"
    rows = GOLDEN[name](path)
    tighten(path)
    answers = {**expected(rows), "texts": TEXTS if name == "recipe" else []}
    text = json.dumps(answers, separators=(",", ":"))
    path.with_name(path.name + ".json").write_text(text + "\n")
    return path


def judge(path: Path, answers: Path, mode: Any = "r") -> int:
    """Compares an index with what is known of it; returns how many answers were compared."""
    known = json.loads(answers.read_text())
    count = 0
    with simindex.open(path, mode) as index:
        assert index.check() == []
        keyed = index.options.keyed
        rows = [
            [words, named(name)]
            for part in index.rows(chunk_rows=5)
            for words, name in zip(
                part.rows.tolist(), part.keys if keyed else part.ids.tolist(), strict=True
            )
        ]
        assert sorted(rows) == known["rows"]
        if index.options.sketch_bits:
            for part in index.rows(chunk_rows=5):
                given = sketch_of([tuple(words) for words in part.rows.tolist()])
                assert np.array_equal(part.sketch, given)
                sizes = sizes_of([tuple(words) for words in part.rows.tolist()])
                assert np.array_equal(part.sizes, sizes)
        assert len(index) == len(rows)
        queries = np.array(known["queries"], np.uint64)
        methods = ["auto", "psm", "scan"]
        methods += ["bphs"] * any(s.startswith("bphs") for s in index.options.structures)
        methods += ["issl"] * any(s.startswith("issl") for s in index.options.structures)
        for method in methods:
            for h in (0, 2, 3):
                found = sorted([m.query, m.distance, named(m.key if keyed else m.id)]
                               for m in index.query(queries, h=h, method=method))
                wanted = [[place, far, name] for place, row in enumerate(known["apart"])
                          for far, name in row if far <= h]
                assert found == sorted(wanted), (method, h)
                count += len(queries)
        for method in ["auto", "scan", *methods[4:]]:
            top = index.top(queries, k=4, method=method, rerank=1000, max_error=0)
            for place, row in enumerate(known["apart"]):
                got = top.distance[place].tolist()
                assert got == sorted(far for far, _ in row)[:4], method
                count += 1
        if known["texts"]:
            again = index.recipe.batch(known["texts"])
            assert sorted(again.rows.tolist()) == sorted(row[0] for row in known["rows"])
    return count


if __name__ == "__main__":
    if sys.argv[1] == "make":
        for wanted in sys.argv[2:] or GOLDEN:
            if (HERE / f"{wanted}-{VERSION}").exists():
                sys.exit(f"{wanted}-{VERSION} is there: it is never written anew")
            make(wanted)
    else:
        print(judge(Path(sys.argv[2]), Path(sys.argv[3])))
