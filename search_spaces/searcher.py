"""The searcher of one study: given points first, then whatever the algorithm proposes.

Everything that the contract asks of all algorithms is here once: numbering, results that are missing, NaN
or told twice, unknown trial ids. The interface is Ray Tune's; Ray itself is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from search_spaces.direction import Mode
from search_spaces.errors import SpaceError
from search_spaces.parameter_grid import Untried
from search_spaces.proposer import FAILED, Proposer, Result, RungProposer, read_outcome
from search_spaces.values import Configuration, Point, own_copy

PATIENCE = 3  # with an algorithm that proposes what has been tried
FINISHED = "FINISHED"  # Ray Tune's word for "no more configurations"


class StudySearcher:
    """Suggests flat configurations of plain Python values; `FINISHED` when there are no more.

    Results need the metric and, where known, `training_iteration`; a true `stopped` in the last one says
    that the scheduler ended the trial early. Trial ids are only remembered while a trial runs; unknown ones
    are ignored. untried: of the points of the space, where each is suggested once.
    """

    def __init__(
        self,
        proposer: Proposer,
        *,
        metric: str,
        mode: Mode,
        points: Sequence[Point] = (),
        untried: Untried | None = None,
    ) -> None:
        self.metric, self.mode, self._untried = metric, mode, untried
        self.proposer = proposer
        self._points = [dict(point) for point in points]
        self._running: dict[str, tuple[int, Configuration]] = {}
        self._suggested = 0

    def suggest(self, trial_id: str) -> Configuration | str:
        number = self._suggested
        config = self._given(number) or self._propose(number)
        if config is None:
            return FINISHED
        if self._untried is not None:
            self._untried.add(config)
        self._suggested += 1
        self._running[trial_id] = number, config
        return own_copy(config)  # the trial's; what is done to it changes no other trial

    def adopt(self, trial_id: str, config: Point) -> None:
        """Let a trial have another configuration than the one suggested for it, or one where none was suggested."""
        if trial_id in self._running:
            number, _ = self._running[trial_id]
            self.proposer.learn(number, FAILED)
        else:
            number = self._suggested
            self._suggested += 1
        self.proposer.adopt(number, config)
        self._running[trial_id] = number, dict(config)

    def _given(self, number: int) -> Configuration | None:
        if number >= len(self._points):
            return None
        self.proposer.adopt(number, self._points[number])
        return self._points[number]

    def _propose(self, number: int) -> Configuration | None:
        """Return what the algorithm proposes; if it keeps to points that have been tried, one that has not."""
        if self._untried is None:
            return self.proposer.propose(number)
        for _ in range(PATIENCE):
            try:
                config = self.proposer.propose(number)
            except SpaceError:  # the constraints refuse what it draws; who goes through the points finds the few
                break
            before = None if config is None else self._untried.outcome(config)
            if before is None:
                return config
            self.proposer.learn(number, before)  # as a trial of it would end again
        config = self._untried.next()
        if config is not None:
            self.proposer.adopt(number, config)
        return config

    def on_trial_complete(self, trial_id: str, result: Result | None = None, error: bool = False) -> None:
        number, config = self._running.pop(trial_id, (None, {}))
        if number is not None:
            outcome = read_outcome(result, self.metric, error)
            if self._untried is not None:
                self._untried.add(config, outcome)
            self.proposer.learn(number, outcome)

    def on_pause(self, trial_id: str) -> None:
        """Ray's `HyperBandForBOHB` calls this of whatever searcher it finds; a paused trial changes nothing."""

    def on_unpause(self, trial_id: str) -> None:
        """See `on_pause`."""


class RungSearcher(StudySearcher):
    """For algorithms that learn from intermediate results; the others never see them."""

    proposer: RungProposer

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        if trial_id in self._running:
            number, _ = self._running[trial_id]
            self.proposer.progress(number, read_outcome(result, self.metric, False), result)
