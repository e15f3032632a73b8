"""The searcher of one study: given points first, then whatever the algorithm proposes.

Everything that the contract asks of all algorithms is here once: numbering, results that are missing, NaN
or told twice, unknown trial ids. The interface is Ray Tune's; Ray itself is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from search_spaces.direction import Mode
from search_spaces.outcome import Result, read_outcome
from search_spaces.proposer import Proposer, RungProposer
from search_spaces.values import Configuration, Point, own_copy

FINISHED = "FINISHED"  # Ray Tune's word for "no more configurations"


class StudySearcher:
    """Suggests flat configurations of plain Python values; `FINISHED` when there are no more.

    Results need the metric and, where known, `training_iteration`; a true `stopped` in the last one says
    that the scheduler ended the trial early. Trial ids are only remembered while a trial runs; unknown ones
    are ignored.
    """

    def __init__(self, proposer: Proposer, *, metric: str, mode: Mode, points: Sequence[Point] = ()) -> None:
        self.metric, self.mode = metric, mode
        self.proposer = proposer
        self._points = [dict(point) for point in points]
        self._running: dict[str, int] = {}
        self._suggested = 0

    def suggest(self, trial_id: str) -> Configuration | str:
        number = self._suggested
        if number < len(self._points):
            config = self._points[number]
            self.proposer.adopt(number, config)
        else:
            proposed = self.proposer.propose(number)
            if proposed is None:
                return FINISHED
            config = proposed
        self._suggested += 1
        self._running[trial_id] = number
        return own_copy(config)  # the trial's; what is done to it changes no other trial

    def on_trial_complete(self, trial_id: str, result: Result | None = None, error: bool = False) -> None:
        number = self._running.pop(trial_id, None)
        if number is not None:
            self.proposer.learn(number, read_outcome(result, self.metric, error))

    def on_pause(self, trial_id: str) -> None:
        """Ray's `HyperBandForBOHB` calls this of whatever searcher it finds; a paused trial changes nothing."""

    def on_unpause(self, trial_id: str) -> None:
        """See `on_pause`."""


class RungSearcher(StudySearcher):
    """For algorithms that learn from intermediate results; the others never see them."""

    proposer: RungProposer

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        number = self._running.get(trial_id)
        if number is not None:
            self.proposer.progress(number, read_outcome(result, self.metric, False), result)
