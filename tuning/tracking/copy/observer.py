"""The copy of a run in MLflow while the run goes on: it starts with the run, and is completed when the run ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from tuning.errors import StorageError
from tuning.runs.begin import OwnedRun
from tuning.runs.observer import EndState, RunEnd, RunObserver
from tuning.tracking.copy.live import LiveCopy
from tuning.tracking.settings import settings_of
from tuning.tracking.summary.overview import overview
from tuning.tracking.summary.summary import save_summary

logger = logging.getLogger(__name__)


class MLflowCopy(RunObserver):
    """Copies a run to MLflow, unless its definition switches that off. not_copied: what is missing at the end."""

    at_end = "copying to MLflow"

    def __init__(self, owned: OwnedRun) -> None:
        self._owned = owned
        self._copy: LiveCopy | None = None
        self.not_copied: Mapping[str, int] = {}
        self._started = 0.0

    def began(self) -> None:
        owned = self._owned
        if owned.plan.spec.definition.mlflow.enabled:
            settings = settings_of(owned.directory, owned.term)
            self._copy = LiveCopy(settings, owned.term, owned.timing.mlflow_patience_s)
            self._copy.start()
        self._started = time.time()

    def ended(self, end: RunEnd) -> None:
        if self._copy is None:
            return
        try:
            if end.state is not EndState.LOST:
                self._write_summary(end)
        finally:
            self._close(self._copy, end.state)

    def _write_summary(self, end: RunEnd) -> None:
        """Write what MLflow shows of the run as a whole into the run directory, where the copy finds it."""
        owned, failed = self._owned, end.state is EndState.FAILED
        try:
            shown = overview(end.result, owned.plan.to_dict(), self._started, time.time(), failed=failed)
            save_summary(owned.directory, *shown)
        except (StorageError, OSError, ValueError, TypeError) as error:
            logger.warning("the run's summary for MLflow could not be written: %s", error)

    def _close(self, copy: LiveCopy, state: EndState) -> None:
        timing = self._owned.timing
        patience = {EndState.STOPPED: timing.mlflow_interrupted_s, EndState.KILLED: 0.0}
        status = copy.close(patience.get(state, timing.mlflow_closing_s))
        self.not_copied = status.not_copied
        if status.note:
            logger.warning("%s", status.note)
        if status.missing:
            logger.warning(
                "the copy in MLflow is incomplete: %s are missing (%s); complete it with: tuning mlflow sync %s",
                status.missing,
                status.error or ("the run was stopped first" if state is EndState.STOPPED else "no error was reported"),
                self._owned.directory.shown,
            )
