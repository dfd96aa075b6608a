"""What a reading has met, as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator

from simindex.cli.console import count
from simindex.inputs import FINGERPRINTS, ID_FIELDS, Intake

ADVICE = {
    FINGERPRINTS: "`build` and `query` read them from files that are named, as in FOLDER/*.npy",
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
            "template may look alike: extract the texts first, as docs/how-to/from-html-to-text.md "
            "shows"
        )
    if intake.like_lines:
        verb = "looks like JSON lines and was read as one text" if intake.like_lines == 1 else (
            "look like JSON lines and were read as one text each"
        )
        yield f"{count(intake.like_lines, 'file')} {verb}: give --format jsonl"
    if intake.bad_records:
        yield f"skipped {count(intake.bad_records, 'bad record')}"


def named_by(intake: Intake, asked: str | None) -> Iterator[str]:
    """Which field gave ids where that was not `asked` for, and how other records are named."""
    for field in intake.id_fields:
        if asked is None and field != ID_FIELDS[0]:
            yield f"ids are those of the field {field!r}; --id-field names another"
    if intake.numbered:
        looked = ", ".join(name for name in ID_FIELDS if name in intake.looked_for) or asked
        yield (
            f"{count(intake.numbered, 'record')} without an id (looked for {looked}), named by "
            "file and line; --id-field names the field"
        )
