"""The loop around a copy: list parts, copy what is new, wait out failures, say how it stands."""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable

from tuning.basics.timing import USUAL, Timing
from tuning.tracking.copy.copier import Copier
from tuning.tracking.copy.parts import Parts
from tuning.tracking.settings import CopyStatus, masked

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0


class CopyLoop:
    """Copies parts until there are no more; when something fails, says so, waits a little longer each time, goes on.

    patience: seconds that the store may fail without a success, once no more parts come, before this gives up; until
    then it waits for ever. timing: of the looks for parts. progress: called with the status after every
    change. tracking_uri: its secrets are masked in errors. nice: let the store say how far this process steps back for
    others.
    """

    def __init__(
        self,
        copier: Copier,
        parts: Parts,
        tracking_uri: str,
        *,
        patience: float = math.inf,
        timing: Timing = USUAL,
        progress: Callable[[CopyStatus], None] = lambda _: None,
        nice: bool = False,
    ) -> None:
        self.copier = copier
        self.parts = parts
        self.status = CopyStatus()
        self._tracking_uri = tracking_uri
        self._patience = patience
        self._timing = timing
        self._progress = progress
        self._nice = nice
        self._failing_since: float | None = None
        self._pause = 0.0
        self._settle_at = math.inf

    def run(self) -> CopyStatus:
        """How the copy stands at its end. Never raises: what fails is in the status."""
        while True:
            failure = self._attempt(self._copy)
            if self.parts.abandoned:
                return self.status
            if self.parts.complete:
                if failure is None:
                    failure = self._attempt(self._finish)
                if failure is None or self.copier.stuck or self._impatient():
                    return self.status
            copied = time.monotonic()
            if failure is None:
                failure = self._attempt(self._log_models)
            pause = self._timing.mlflow_look_s if failure is None else self._pause * random.uniform(0.75, 1.25)
            self.parts.wait(max(0.0, pause - (time.monotonic() - copied)))

    def _copy(self) -> None:
        for part in self.parts.look():
            self.copier.add(part)
        store = self.copier.store()  # also when there is nothing yet: making a database takes seconds
        if self._nice:
            os.nice(store.niceness)
            self._nice = False
        while not (self.copier.idle or self.parts.abandoned):
            self.copier.work()
            self._report(None)
        if time.monotonic() >= self._settle_at:
            store.settle()
            self._settle_at = math.inf

    def _log_models(self) -> None:
        """Those that are sure to be wanted, until it is time for the next look: else the run's end waits for them."""
        if not self.parts.ending:
            self.copier.load_ahead()
        until = time.monotonic() + self._timing.mlflow_look_s
        while self.copier.model_due and not self.parts.ending and time.monotonic() < until:
            self.copier.log_model()
            self._report(None)

    def _finish(self) -> None:
        self.copier.finish()
        self._report(None)
        while self.copier.models_pending and not self.parts.abandoned:
            self.copier.log_model()
            self._report(None)

    def _attempt(self, action: Callable[[], None]) -> Exception | None:
        """Run an action; its failure is reported and answered with a pause, never raised."""
        before = self._copied()
        try:
            action()
        except Exception as error:  # whatever MLflow, a database driver or the storage raises is an outage
            now = time.monotonic()
            if self._failing_since is None or self._copied() != before:
                self._failing_since, self._pause = now, 0.0
            self._pause = min(max(FIRST_PAUSE_S, 2 * self._pause), LONGEST_PAUSE_S)
            self._settle_at = now + self._timing.mlflow_settle_s
            self._report(error)
            return error
        self._failing_since, self._pause = None, 0.0
        self._report(None)
        return None

    def _impatient(self) -> bool:
        return self._failing_since is not None and time.monotonic() - self._failing_since >= self._patience

    def _copied(self) -> int:
        progress = self.copier.progress
        return progress.trials + progress.studies + progress.models + len(self.copier.done)

    def _report(self, error: Exception | None) -> None:
        progress = self.copier.progress
        message = progress.error if error is None else _text_of(error)
        status = CopyStatus(
            trials=progress.trials,
            studies=progress.studies,
            copied=len(self.copier.done),
            pending=self.copier.pending,
            models=progress.models,
            models_pending=self.copier.models_pending,
            rejected=progress.rejected,
            error=masked(message, self._tracking_uri) if message else None,
            note=self.copier.note,
            healthy=error is None,
        )
        if status != self.status:
            self.status = status
            self._progress(status)


def _text_of(error: Exception) -> str:
    """An error as text; of a database's only what its driver said, not the statement with its thousand values."""
    cause = getattr(error, "orig", None) or error
    return f"{type(cause).__name__}: {cause}"
