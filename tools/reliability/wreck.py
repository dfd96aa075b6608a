"""An index that only a repair opens again, and that loses nothing by it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

import simindex
from reliability.trials import Fault
from simindex.storage.catalog.pages import META


def wreck(path: Path) -> None:
    """Removes FORMAT, and lets the newest meta page name a last page beyond the file's end."""
    (path / "FORMAT").unlink()
    with (path / "catalog" / "data.mdb").open("r+b") as file:
        first, second = (
            np.frombuffer(os.pread(file.fileno(), META.itemsize, start), META)[0]
            for start in (0, os.sysconf("SC_PAGE_SIZE"))
        )
        newest = max(first, second, key=lambda meta: int(meta["commit"]))
        fields = META.fields
        assert fields is not None
        file.seek(int(newest["page"]) * int(newest["page_bytes"]) + fields["last"][1])
        file.write((1 << 24).to_bytes(8, "little"))


def cleared(report: simindex.RepairReport, path: Path) -> None:
    """Removes what a repair replaced, as its user does; raises Fault if it lost anything."""
    damaged = [finding for finding in report.remaining if finding.severity == "error"]
    if report.losses or report.lost_rows or damaged:
        raise Fault("lost", f"by a repair: {report.losses}, {damaged}")
    for kept in path.glob("damaged-*"):
        shutil.rmtree(kept)


def mend(path: Path) -> None:
    """Repairs an index, in whatever state another repair has left it."""
    cleared(simindex.repair(path, apply=True), path)
