"""The scan keeps the contract for every width."""

from __future__ import annotations

from contract import MethodContract


class TestScan(MethodContract):
    method = "scan"
