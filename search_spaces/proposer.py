"""What an algorithm does for one study: propose a configuration, hear how its trial ended."""

from __future__ import annotations

from typing import Protocol

from search_spaces.outcome import Outcome, Result
from search_spaces.values import Configuration, Point


class Proposer(Protocol):
    """The part of an algorithm that differs from the others; `StudySearcher` does everything else.

    Trials are numbered from 0 in the order they were suggested. A proposer is used by one study in one
    thread, draws only from generators it made from its seed, and hands out configurations that are its
    caller's to change.
    """

    def propose(self, number: int) -> Configuration | None:
        """The configuration of trial `number`, inside the space; None when there will never be another one."""

    def adopt(self, number: int, config: Point) -> None:
        """Trial `number` evaluates a point that was given, not proposed."""

    def learn(self, number: int, outcome: Outcome) -> None:
        """Trial `number` ended; called at most once per trial, for failed ones too."""

    def remember(self, config: Point, value: float) -> None:
        """A point whose score is known from before this study; not a trial."""


class RungProposer(Proposer, Protocol):
    """A proposer that also learns from intermediate results."""

    def progress(self, number: int, outcome: Outcome, result: Result) -> None:
        """Trial `number` has reported an intermediate result."""
