"""What recipes do to real text: `python tools/reproduce/recipes.py --data DIR --out DIR`.

Writes the tables of docs/explanation/recipes-compared.md to OUT/recipes.md and its plots to
OUT/*.svg. It takes about ten minutes on one core. DIR holds `*.jsonl.zst`. Each line has path, seq
and text, and the lines are sorted by path and seq. Needs the extras `plots` and `zst`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from reproduce import (  # noqa: E402
    agreement,
    candidates,
    mixes,
    pages,
    plots,
    revisions,
    tables,
)
from reproduce.progress import say  # noqa: E402


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("--data", type=Path, required=True, help="directory of *.jsonl.zst")
    made.add_argument("--out", type=Path, required=True, help="where tables and plots go")
    made.add_argument(
        "--documents", type=int, default=750, help="of each source, for all pairs with cosines"
    )
    made.add_argument(
        "--of-a-path", type=int, default=6, help="revisions of a path among those documents"
    )
    made.add_argument("--seed", type=int, default=2011)
    made.add_argument("--only", choices=("revisions", "agreement"), help="one of the two parts")
    return made


def revision_part(
    data: Path, sources: list[str], seed: int, out: Path
) -> list[tuple[str, str]]:
    """Consecutive revisions and unrelated pages."""
    found, missing = [], []
    for one in revisions.measure(data, sources, seed):
        if isinstance(one, str):
            missing.append(one)
            say(one)
        else:
            found.append(one)
            say(f"{one.source}: {one.label}, {one.kind}")
    plots.revisions(found, out / "revisions.svg")
    plots.unrelated(found, out / "unrelated.svg")
    compared_cells, line = tables.with_reference(found)
    return [
        ("Consecutive revisions: share within h, [95 % interval over pages]",
         tables.revisions(found) + "".join(f"\n{one}\n" for one in missing)),
        ("Tf-idf words and an earlier measurement (in parentheses)", f"{compared_cells}\n{line}"),
        ("3-word shingles and an earlier measurement", tables.shingles(found)),
        ("Unrelated pages: distances and share within h", tables.unrelated(found)),
    ]


def sample(
    data: Path, sources: list[str], options: argparse.Namespace, times: dict[str, int]
) -> tuple[agreement.Sample, str]:
    """Documents of each source, of some so many times as many; and how many they are."""
    documents = []
    for source in sources:
        most = options.documents * times.get(source, 1)
        every = list(pages.documents(data, source))
        documents += pages.sampled(every, most, options.of_a_path, options.seed)
    made = agreement.sample(documents, sources, options.seed)
    n, drawn = len(documents), made.drawn.shape[1]
    size = f"{n:,} documents of {drawn:,} pages, {n * (n - 1) // 2:,} pairs"
    say(size)
    return made, size


def compared(
    recipes: list[candidates.Candidate], of: agreement.Sample
) -> tuple[list[agreement.Curves], list[str]]:
    """The curves of each recipe, and lines for those that are not known."""
    found, missing = [], []
    for candidate in recipes:
        recipe = candidates.recipe(candidate, lambda: of.texts)
        if recipe is None:
            missing.append(f"left out, not known to this version: {candidate.label}")
            say(missing[-1])
            continue
        found.append(agreement.measure(candidate, recipe.batch(of.texts).rows, of))
        say(candidate.label)
    return found, missing


def agreement_part(
    data: Path, sources: list[str], options: argparse.Namespace
) -> list[tuple[str, str]]:
    """All pairs of a sample against exact cosines."""
    of, size = sample(data, sources, options, {})
    found, missing = compared(candidates.AGREEMENT, of)
    named = {one.candidate.label: one for one in found}
    main = named["word 1, tfidf"]
    shown = [main, named["word 1, tf"], named["word 3, tf"]]
    plots.weightings(found, options.out / "weightings.svg")
    plots.thresholds(main, options.out / "thresholds.svg")
    plots.features(found, options.out / "features.svg")
    plots.widths([main, named["word 3, tf"]], options.out / "widths.svg")
    plots.expected(shown, options.out / "expected.svg")
    plots.by_source(main, sources, options.out / "sources.svg")
    more = mixes.nearest(found, sources)
    heavy, heavy_size = sample(data, sources, options, {more: mixes.TIMES})
    again, _ = compared([one.candidate for one in mixes.compared(found)], heavy)
    plots.other_mixes(found, sources, again, more, options.out / "mixes.svg")
    return [
        (f"Precision / recall against cosine >= 0.9, 64 bits: {size}",
         tables.agreement(found) + "".join(f"\n{one}\n" for one in missing)),
        ("h where precision and recall cross: their value there", tables.thresholds(found)),
        ("Within each source, cosine >= 0.9", tables.by_source(found, sources)),
        ("Pairs of different pages of one source within h, in a million", tables.strangers(found)),
        ("Mean distance by cosine, tf-idf words", tables.expected(main)),
        ("Measured, {range of four sets of hash functions}, and expected from the cosines alone",
         tables.from_cosines(found, sources)),
        (f"Other mixes of the same pairs; {mixes.heavy(more)}: {heavy_size}",
         tables.other_mixes(found, sources, again, mixes.heavy(more))),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and writes."""
    options = parser().parse_args(arguments)
    if options.documents < 2 or options.of_a_path < 1:
        parser().error("--documents is at least 2, --of-a-path at least 1")
    sources = pages.sources(options.data)
    if not sources:
        parser().error(f"no *.jsonl.zst in {options.data}")
    options.out.mkdir(parents=True, exist_ok=True)
    parts: list[tuple[str, str]] = []
    if options.only != "agreement":
        parts += revision_part(options.data, sources, options.seed, options.out)
    if options.only != "revisions":
        parts += agreement_part(options.data, sources, options)
    report = "\n".join(f"## {title}\n\n{text}" for title, text in parts)
    head = "# Tables of choosing a recipe\n\nWritten by `tools/reproduce/recipes.py`.\n\n"
    (options.out / "recipes.md").write_text(head + report, encoding="utf-8")
    say(f"written to {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
