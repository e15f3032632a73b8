"""What is taken out of a run for one request: a model's files, predictions, a customer's report.

Each is made by a child process, a few at a time whoever asks, since all of them read what a run holds.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from tuning import errors
from tuning.errors import RunError, TuningError
from tuning.service.children import ChildLimits, ChildQueue, roots_variable, run_child, run_variable
from tuning.service.database.runs import SubmittedRun
from tuning.service.extract_child import ANSWER, REFUSED, ROWS_CSV, ROWS_JSON
from tuning.service.settings import ServiceSettings
from tuning.service.views.views import Views

AT_ONCE = 2
MOST_OPEN = 4  # of a team
MOST_REPORTS = 100  # of customers of one run, that are kept
LIMITS = ChildLimits(seconds=120.0)

RowsForm = Literal["csv", "json"]
Formulas = Literal["keep", "guard"]


@dataclass(frozen=True)
class _Asked:
    """What the child is told. most, formulas, interval: as of `extract_child.write_predictions`."""

    kind: Literal["model", "report", "predictions"]
    customer: str | None
    most: int = 0
    formulas: Formulas = "keep"
    interval: float | None = None


class Extracts:
    """What is taken out of runs.

    views: whose folders keep the reports. Answers are open files whose names are gone: closing one deletes it.
    """

    def __init__(self, settings: ServiceSettings, views: Views) -> None:
        self._settings, self._views = settings, views
        self._queue = ChildQueue("models, predictions or reports", AT_ONCE, MOST_OPEN)

    def model(self, run: SubmittedRun, customer: str | None) -> Future[BinaryIO]:
        """A ZIP archive of a customer's saved model; None where the run has a single one. `QuotaError` for too many
        at once; the child's errors are those of `tuning.errors`."""
        return self._queue.submit(run.team, lambda: self._extract(run, _Asked("model", customer)))

    def predictions(
        self,
        run: SubmittedRun,
        customer: str | None,
        rows: bytes,
        form: RowsForm,
        formulas: Formulas = "keep",
        interval: float | None = None,
    ) -> Future[BinaryIO]:
        """Rows with predictions, in the form in which they were sent; errors as of `model`."""
        given = {ROWS_CSV if form == "csv" else ROWS_JSON: rows}
        asked = _Asked("predictions", customer, self._settings.prediction_rows, formulas, interval)
        return self._queue.submit(run.team, lambda: self._extract(run, asked, given))

    def report(self, run: SubmittedRun, customer: str) -> Future[BinaryIO]:
        """A customer's page, which is kept as long as the run's tables are; errors as of `model`."""
        return self._queue.submit(run.team, lambda: self._report(run, customer))

    def close(self) -> None:
        """Begin no further ones."""
        self._queue.close()

    def _extract(self, run: SubmittedRun, asked: _Asked, given: Mapping[str, bytes] | None = None) -> BinaryIO:
        with self._folder(run) as folder:
            for name, content in (given or {}).items():
                (folder / name).write_bytes(content)
            # Rows that were sent are all that is read beside the run; a report reads the customer's rows.
            roots = roots_variable(self._settings, run.team)
            allowed = roots if asked.kind == "report" else {"TUNING_DATA_ROOTS": str(folder)}
            arguments = json.dumps(asdict(asked)).encode()
            child = "tuning.service.extract_child"
            variables = {**allowed, **run_variable(run.id)}
            end = run_child(child, [run.run_directory], variables, LIMITS, folder=folder, given=arguments)
            if end.code == REFUSED:
                told = json.loads(end.output)
                kind: type[TuningError] = getattr(errors, told["error"])
                error = kind(self._outside(told["reason"], run))
                error.key = told["key"]
                raise error
            if end.code:
                raise RunError(self._outside(f"this could not be made: {end.reason}", run))
            return open(folder / ANSWER, "rb")

    def _outside(self, sentence: str, run: SubmittedRun) -> str:
        """A sentence with names in place of paths, and with the parameter in place of Python's argument."""
        named = self._settings.names(run.team).text(sentence.replace(run.run_directory, f"run {run.id}"))
        return named.replace("`customer`", "`id`")

    def _report(self, run: SubmittedRun, customer: str) -> BinaryIO:
        folder = self._views.of(run).tables.folder
        kept = folder / f"report-{hashlib.sha256(customer.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.html"
        with contextlib.suppress(FileNotFoundError):
            return open(kept, "rb")
        page = self._extract(run, _Asked("report", customer))
        with contextlib.suppress(FileNotFoundError):  # newer tables have taken the folder's place
            part = kept.with_suffix(f".{threading.get_ident()}")
            part.write_bytes(page.read())
            os.replace(part, kept)
            reports = sorted(folder.glob("report-*.html"), key=lambda file: file.stat().st_mtime)
            for oldest in reports[:-MOST_REPORTS]:
                oldest.unlink(missing_ok=True)
        page.seek(0)
        return page

    @contextlib.contextmanager
    def _folder(self, run: SubmittedRun) -> Iterator[Path]:
        """Of one child, among what the service keeps of a run."""
        work = self._settings.work / run.id
        work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work, prefix="extract-") as folder:
            yield Path(folder)
