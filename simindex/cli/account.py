"""What a reading has met, as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator

from simindex.cli.console import count
from simindex.inputs.document import FINGERPRINTS, ID_FIELDS, Intake

SHOWN_KINDS = 5
"""Of records that are no documents, so many kinds are named."""

ADVICE = {
    FINGERPRINTS: "`build` and `query` read such files if you name them, as in FOLDER/*.npy",
}
"""What else to say about files that were skipped, by the reason."""


def met(intake: Intake) -> Iterator[str]:
    """What was skipped, or read in a way that its user may not want."""
    for kind, number in sorted(intake.passed_over.items()):
        files = intake.first_passed_over[kind]
        more = ", ..." if number > len(files) else ""
        advice = f"; {ADVICE[kind]}" if kind in ADVICE else ""
        yield f"skipped {count(number, 'file')}: {kind} ({', '.join(files)}{more}){advice}"
    if intake.markup:
        yield (
            f"{count(intake.markup, 'HTML file')} read with the markup, so pages with the same "
            "template may look alike: leave out --html raw and --format text"
        )
    if intake.like_lines:
        verb = "looks like JSON lines and was read as one text" if intake.like_lines == 1 else (
            "look like JSON lines and were read as one text each"
        )
        yield f"{count(intake.like_lines, 'file')} {verb}: give --format jsonl"
    if intake.other_records:
        kinds = intake.other_records.most_common()
        named = ", ".join(f"{number:,} {kind}" for kind, number in kinds[:SHOWN_KINDS])
        more = ", ..." if len(kinds) > SHOWN_KINDS else ""
        total = count(sum(intake.other_records.values()), "record")
        yield f"skipped {total} of archives, without a page or text: {named}{more}"
    if intake.cut_pages:
        total = count(sum(intake.cut_pages.values()), "document")
        named = ", ".join(f"{number:,} {how}" for how, number in intake.cut_pages.most_common())
        yield f"{total} of archives: only the start of the page was stored ({named})"
    if intake.bad_records:
        yield f"skipped {count(intake.bad_records, 'bad record')}"


def named_by(intake: Intake, asked: str | None) -> Iterator[str]:
    """Which field gave ids where that was not `asked` for, and how other records are named."""
    for field in intake.id_fields:
        if asked is None and field != ID_FIELDS[0]:
            yield f"ids are those of the field {field!r}; --id-field NAME takes another field"
    if intake.numbered:
        usual = [name for name in ID_FIELDS if name in intake.looked_for]
        looked = ", ".join([*usual, *sorted(intake.looked_for - {*usual})]) or asked
        yield (
            f"{count(intake.numbered, 'record')} without an id (looked for {looked}), named by "
            "file and line; --id-field NAME takes the id from a field"
        )
