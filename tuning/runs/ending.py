"""What is written and said when a run has ended: its leaderboard, logs that are missing, how to go on."""

from __future__ import annotations

import logging

from tuning.basics.wording import amount, one_line, time_text
from tuning.records.parts import accepted
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import EndState, RunEnd, RunObserver
from tuning.runs.outcome import LEADERBOARD_FILE
from tuning.runs.trial_logs import TrialLogs

logger = logging.getLogger(__name__)


class LeaderboardFile(RunObserver):
    """Writes the leaderboard into the run's folder, also when the run is stopped; a comparison has none."""

    def __init__(self, owned: OwnedRun) -> None:
        self._owned = owned

    def ended(self, end: RunEnd) -> None:
        stopped = end.state is EndState.STOPPED
        if (end.state.in_order or stopped) and self._owned.plan.spec.definition.compare is None:
            self._owned.directory.write_pieces(LEADERBOARD_FILE, end.result.board().csv)


class MissingLogs(RunObserver):
    """Writes the logs of trials that no worker has written: it died before, or the run had no loggers then."""

    def __init__(self, owned: OwnedRun) -> None:
        self._owned = owned

    def ended(self, end: RunEnd) -> None:
        if not end.state.in_order:
            return
        owned = self._owned
        try:
            parts = accepted(owned.directory, owned.term)
            TrialLogs(owned.directory, owned.plan.spec.definition.loggers).complete(parts)
        except Exception as error:
            logger.warning("logs of trials are missing: %s; a resume writes them", one_line(error))


class BudgetAdvice(RunObserver):
    """Says how to go on with a run whose time is used up."""

    def __init__(self, owned: OwnedRun) -> None:
        self._owned = owned

    def ended(self, end: RunEnd) -> None:
        if end.state is EndState.SPENT and end.result.unfinished:
            logger.warning(
                "the time budget (%s) is spent, with %s unfinished, whose trials so far are kept; resume with a larger "
                "budget, which counts from the run's beginning: %s",
                time_text(self._owned.plan.spec.definition.time_budget or 0.0),
                amount(end.result.unfinished, "study"),
                self._owned.resume_advice("time_budget"),
            )
