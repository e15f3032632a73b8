"""What is written when a run has ended: outcome, leaderboard, report, missing logs."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Mapping, Sequence

from tuning.basics.documents import Json
from tuning.basics.exit_codes import of_models, of_searches, outcome_of
from tuning.basics.wording import one_line
from tuning.errors import TuningError, failure
from tuning.records.ownership import check_there
from tuning.records.parts import accepted
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import EndState, RunEnd, RunObserver
from tuning.runs.outcome import LEADERBOARD_FILE
from tuning.runs.outcome_file import OUTCOME
from tuning.runs.trial_logs import TrialLogs

logger = logging.getLogger(__name__)


class LeaderboardFile(RunObserver):
    """Writes the leaderboard into the run's folder, also when the run is stopped; a comparison has none."""

    def __init__(self, owned: OwnedRun) -> None:
        self._owned = owned

    def ended(self, end: RunEnd) -> None:
        stopped = end.state is EndState.STOPPED
        if (end.state.in_order or stopped) and self._owned.plan.spec.definition.compare is None:
            self._owned.directory.write_pieces(LEADERBOARD_FILE, end.result.board().csv())


class ReportWriter(RunObserver):
    """Writes the report when a run has ended; not of a comparison, and not where `report` is false.

    The libraries that draw are loaded while the workers go on: not before their first trial, and not in a process that
    is forked.
    """

    at_end = "writing the report"

    def __init__(self, owned: OwnedRun) -> None:
        definition = owned.plan.spec.definition
        self._wanted = definition.report and definition.compare is None
        self._studies = len(owned.plan.studies)
        self._loading: threading.Thread | None = None

    def recorded(self, part: str) -> None:
        if self._wanted and self._loading is None:
            self._loading = threading.Thread(target=self._load, name="report", daemon=True)
            self._loading.start()

    def ended(self, end: RunEnd) -> None:
        if not (self._wanted and end.state.in_order):
            return
        from tuning.runs.report.page import write_report

        if self._loading is not None:
            self._loading.join()
        try:
            write_report(end.result, quick=True)
        except Exception as error:
            logger.warning("the run's report could not be written: %s", one_line(error))

    def _load(self) -> None:
        with contextlib.suppress(Exception):  # `ended` meets it, too
            from tuning.runs.report.page import load_ahead

            load_ahead(self._studies)


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


def write_outcome(owned: OwnedRun, end: RunEnd, not_copied: Mapping[str, int], lost_nodes: Sequence[str]) -> None:
    """Write how the work on a run has ended, unless the run has another owner or cannot be written to.

    not_copied, lost_nodes: see `RunOutcome`.
    """
    if end.state is EndState.LOST or owned.lease.taken_by or owned.lease.gone:
        return
    try:
        check_there(owned.directory, owned.term)
        counts: Json = {} if end.state is EndState.KILLED else {**end.result.summary()}
        if end.error is not None:
            why = failure(end.error)
        else:
            number = of_models(counts["customers"], counts["succeeded"])
            if owned.plan.spec.definition.compare is not None:
                number = of_searches(end.result.unfinished)
            code = "time_budget" if end.state is EndState.SPENT else "done"
            why = {"outcome": outcome_of(number), "exit_code": number, "code": code, "values": {}, "reason": ""}
        term, state = owned.term.number, end.state.word
        told = {"term": term, "state": state, **why, "not_copied": not_copied, "lost_nodes": lost_nodes}
        owned.directory.write(OUTCOME, json.dumps({**counts, **told}, ensure_ascii=False).encode())
    except TuningError as error:
        logger.warning("how the run has ended could not be written: %s", error)
