"""Whatever the planner chooses keeps the contract."""

from __future__ import annotations

from contract import MethodContract


class TestAuto(MethodContract):
    method = "auto"
