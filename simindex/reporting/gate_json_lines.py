"""JSON lines of a gate: an object for each document with a match, and one for the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from simindex.outputs.columns import as_json_line, key_text
from simindex.reporting.gate_findings import Flagged, Opening, Verdict, similarity_of

if TYPE_CHECKING:
    from simindex.records.matches import Match


class GateLines:
    """Writes each document as it is found."""

    def __init__(self, stream: TextIO, opening: Opening) -> None:
        self._stream = stream
        self._opening = opening

    def add(self, flagged: Flagged) -> None:
        """A document with its matches."""
        place = flagged.place
        self._write({
            "kind": "match", "document": place.key, "file": place.path, "line": place.line,
            "matches": [_told(match) for match in flagged.matches], "more": flagged.more,
        })

    def end(self, verdict: Verdict) -> None:
        """The verdict, as the last line."""
        opening, limits = self._opening, self._opening.limits
        self._write({
            "kind": "verdict", "passed": verdict.passed, "documents": verdict.documents,
            "matched": verdict.matched, "share": verdict.share,
            "without_fingerprint": verdict.without_fingerprint,
            "bad_records": verdict.bad_records, "max_matches": limits.max_matches,
            "max_share": limits.max_share, "index": opening.index, "bits": opening.bits,
            "h": opening.h, "similarity": opening.similarity,
            **({} if opening.measure == "cosine" else {"measure": opening.measure}),
            "guarantee": "; ".join(verdict.guarantees), "seconds": round(verdict.seconds, 3),
        })

    def _write(self, record: dict[str, Any]) -> None:
        self._stream.write(as_json_line(record) + "\n")


def _told(match: Match) -> dict[str, Any]:
    told = {"id": match.id, "key": key_text(match.key), "distance": match.distance}
    found = similarity_of(match)
    if found is None:
        return told
    return {**told, "similarity": found[0], "similarity_error": found[1]}
