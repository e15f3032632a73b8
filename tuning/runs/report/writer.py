"""Writes the report of a run when it ends."""

from __future__ import annotations

import contextlib
import logging
import threading

from tuning.basics.wording import one_line
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import RunEnd, RunObserver

logger = logging.getLogger(__name__)


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
        from tuning.runs.report.customer import SMALL
        from tuning.runs.report.page import write_report

        if self._loading is not None:
            self._loading.join()
        try:
            write_report(end.result, SMALL)
        except Exception as error:
            logger.warning("the run's report could not be written: %s", one_line(error))

    def _load(self) -> None:
        with contextlib.suppress(Exception):  # `ended` meets it, too
            from tuning.runs.report.page import load_ahead

            load_ahead(self._studies)
