"""JSON lines of a gate: an object for each document with a match, and one for the verdict."""

from __future__ import annotations

from typing import Any, TextIO

from simindex.outputs.columns import as_json_line, key_text
from simindex.reporting.gate_findings import Flagged, Opening, Verdict


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
            "matches": [
                {
                    "id": match.id, "key": key_text(match.key), "distance": match.distance,
                    **({} if match.similarity is None else {
                        "similarity": round(match.similarity, 4),
                        "similarity_error": round(match.similarity_error or 0.0, 4),
                    }),
                }
                for match in flagged.matches
            ],
            "more": flagged.more,
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
            "guarantee": "; ".join(verdict.guarantees), "seconds": round(verdict.seconds, 3),
        })

    def _write(self, record: dict[str, Any]) -> None:
        self._stream.write(as_json_line(record) + "\n")
