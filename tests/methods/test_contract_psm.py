"""PSM keeps the contract when it is exhausted, and for 64 bits has nothing to refuse."""

from __future__ import annotations

from contract import MethodContract


class TestPsm(MethodContract):
    method = "psm"
    every_width = False
