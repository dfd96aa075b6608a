"""A gate's report as SARIF 2.1.0, which code hosts and editors show beside the files.

    run.tool.driver.rules     one rule each for equal fingerprints and for near ones
    run.results[]             a document: its file and line, and its matches as related locations
    run.invocations[0]        the verdict, and bad records as notifications

Results are written as they come; what is known at the end follows them. Source: OASIS, Static
Analysis Results Interchange Format 2.1.0, sections 3.13 to 3.28.
"""

from __future__ import annotations

import os
import re
from typing import Any, TextIO
from urllib.parse import quote

from simindex.bits.digests import blake2b
from simindex.outputs.columns import as_json_line, key_text
from simindex.reporting.escaping import NAME_CHARACTERS, plain_name
from simindex.reporting.gate_findings import (
    Flagged,
    Opening,
    Place,
    Verdict,
    name_of,
    nearness_of,
    similarity_of,
)

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

EQUAL, NEAR = "equal-fingerprint", "near-duplicate"

RULES: list[dict[str, Any]] = [
    {
        "id": EQUAL, "name": "EqualFingerprint",
        "shortDescription": {"text": "The document is in the index."},
        "fullDescription": {
            "text": "All compared bits are those of a stored document, so both have the same "
            "words, or nearly so."
        },
        "defaultConfiguration": {"level": "error"},
    },
    {
        "id": NEAR, "name": "NearDuplicate",
        "shortDescription": {"text": "The index has a near-duplicate of the document."},
        "fullDescription": {
            "text": "The compared bits differ in so few places that both documents share most of "
            "their words."
        },
        "defaultConfiguration": {"level": "error"},
    },
]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")
_LINKS = re.compile(r"[\[\]]")
_SAFE = "/:@!$&'()*+,;=~-._"


class GateSarif:
    """Writes each document as a result as it is found."""

    def __init__(self, stream: TextIO, opening: Opening) -> None:
        self._stream, self._opening = stream, opening
        driver = {
            "name": "simindex", "semanticVersion": opening.version, "version": opening.version,
            "rules": RULES,
        }
        stream.write(
            f'{{"$schema": "{SCHEMA}", "version": "2.1.0", "runs": [{{'
            f'"tool": {as_json_line({"driver": driver})}, '
            '"columnKind": "unicodeCodePoints", "results": ['
        )
        self._separator = "\n"

    def add(self, flagged: Flagged) -> None:
        """A document as a result."""
        place, nearest = flagged.place, flagged.matches[0]
        equal = nearest.distance == 0
        more = ", and others" if flagged.more or len(flagged.matches) > 1 else ""
        told = "has the fingerprint of" if equal else "is a near-duplicate of"
        properties: dict[str, Any] = {"distance": nearest.distance, "bits": self._opening.bits}
        found = similarity_of(nearest)
        if found is not None:
            properties |= {"similarity": found[0], "similarityError": found[1]}
        result = {
            "ruleId": EQUAL if equal else NEAR,
            "ruleIndex": 0 if equal else 1,
            "level": "error",
            "message": {
                "text": f"{_told(place.key)} {told} {_told(name_of(nearest))} in "
                f"{_told(self._opening.index)} "
                f"({nearness_of(nearest, self._opening.bits)}){more}."
            },
            "locations": [_location(place, place.key)],
            "relatedLocations": [
                {
                    "id": number,
                    "message": {"text": nearness_of(match, self._opening.bits)},
                    "logicalLocations": [{
                        "name": plain_name(name_of(match)),
                        "fullyQualifiedName": plain_name(
                            f"{self._opening.index}#{name_of(match)}", 1000
                        ),
                        "kind": "resource",
                    }],
                    "properties": {"id": str(match.id), "key": key_text(match.key)},
                }
                for number, match in enumerate(flagged.matches)
            ],
            "partialFingerprints": {"documentAndMatch/v1": _digest(place.key, name_of(nearest))},
            "properties": properties,
        }
        self._stream.write(self._separator + as_json_line(result))
        self._separator = ",\n"

    def end(self, verdict: Verdict) -> None:
        """The verdict, and the end of the log."""
        notes = [
            {
                "level": "warning",
                "message": {"text": _told(note.what, 1000)},
                "locations": [_location(Place("", note.path, note.line))],
            }
            for note in verdict.notes
        ]
        invocation = {
            "executionSuccessful": True, "exitCode": verdict.exit_code,
            "exitCodeDescription": "passed" if verdict.passed else "too many matches",
            "toolExecutionNotifications": notes,
        }
        limits = self._opening.limits
        properties = {
            "passed": verdict.passed, "documents": verdict.documents, "matched": verdict.matched,
            "share": verdict.share, "withoutFingerprint": verdict.without_fingerprint,
            "badRecords": verdict.bad_records, "maxMatches": limits.max_matches,
            "maxShare": limits.max_share, "index": self._opening.index,
            "guarantee": "; ".join(verdict.guarantees),
        }
        self._stream.write(
            f'\n], "invocations": [{as_json_line(invocation)}], '
            f'"properties": {as_json_line(properties)}}}]}}\n'
        )


def _location(place: Place, key: str | None = None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri_of(place.path)}}
    if place.line is not None and place.line > 0:
        physical["region"] = {"startLine": place.line}
    location: dict[str, Any] = {"physicalLocation": physical}
    if key is not None:
        location["logicalLocations"] = [{
            "name": plain_name(key), "fullyQualifiedName": plain_name(key, 1000),
            "kind": "resource",
        }]
    return location


def uri_of(path: str) -> str:
    """A file as a URI: of a relative path it is relative, and `-` is ``stdin``."""
    if path == "-":
        return "stdin"
    if _SCHEME.match(path):
        return quote(path.encode("utf-8", "surrogateescape"), safe=f"{_SAFE}?#[]%")
    quoted = quote(os.fsencode(path), safe=_SAFE)
    if path.startswith("/"):
        return f"file://{quoted}"
    return f"./{quoted}" if ":" in quoted.partition("/")[0] else quoted


def _told(name: str, most: int = NAME_CHARACTERS) -> str:
    """A name within a message, where brackets would make a link."""
    return _LINKS.sub(r"\\\g<0>", plain_name(name, most))


def _digest(*names: str) -> str:
    """What tells a finding from others in every run."""
    digest = blake2b(digest_size=16)
    for name in names:
        encoded = name.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()
