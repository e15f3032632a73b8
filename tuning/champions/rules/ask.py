"""Propose who would be promoted, and leave the decision to people."""

from __future__ import annotations

from tuning.champions.rules.rule import PROPOSED
from tuning.champions.rules.sure import Sure


class Ask(Sure):
    """The same as `sure`, as a file that somebody accepts."""

    name = "ask"
    summary = "writes whom `sure` would promote into a file, which `tuning promote --accept FILE` releases"
    outcome = of_faulty = PROPOSED
