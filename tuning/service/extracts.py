"""What is taken out of a run for one request: a model's files, predictions, a customer's report.

Each is made by a child process, since all of them read what a run holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from tuning.service.children import ChildLimits, Children, Kind, roots_variable, run_variable
from tuning.service.database.runs import SubmittedRun
from tuning.service.extract_child import ANSWER, ROWS_CSV, ROWS_JSON
from tuning.service.settings import ServiceSettings
from tuning.storage.data_roots import VARIABLE

KIND = Kind("models, predictions or reports", at_once=2, most_open=4)
LIMITS = ChildLimits(seconds=120.0)

RowsForm = Literal["csv", "json"]
Formulas = Literal["keep", "guard"]


@dataclass(frozen=True)
class SentRows:
    """Rows to predict, and how: for whom, what becomes of formulas in CSV, and with which intervals."""

    rows: bytes
    form: RowsForm
    customer: str | None = None
    formulas: Formulas = "keep"
    interval: float | None = None

    def values(self, settings: ServiceSettings) -> dict[str, object]:
        """Return what a child is asked."""
        told = {"customer": self.customer, "formulas": self.formulas, "interval": self.interval}
        return {**told, "most": settings.prediction_rows}

    def write(self, folder: Path) -> None:
        """Place the rows where a child reads them."""
        (folder / (ROWS_CSV if self.form == "csv" else ROWS_JSON)).write_bytes(self.rows)


class RunArtifacts:
    """What is taken out of runs. Answers are open files without a name: closing one deletes it."""

    def __init__(self, settings: ServiceSettings, children: Children) -> None:
        self._settings, self._children = settings, children

    def model(self, run: SubmittedRun, customer: str | None) -> Future[BinaryIO]:
        """Make a ZIP archive of a customer's saved model; None where the run has a single one.

        `QuotaError` for too many at once; other errors are those that the child raises.
        """
        return self._children.submit(KIND, run.team, lambda: self._file(run, "write_model", {"customer": customer}))

    def predictions(self, run: SubmittedRun, sent: SentRows) -> Future[BinaryIO]:
        """Predict rows, and answer in the form in which they were sent; the same errors as `model`."""
        values = sent.values(self._settings)
        return self._children.submit(KIND, run.team, lambda: self._file(run, "write_run_predictions", values, sent))

    def report(self, run: SubmittedRun, customer: str) -> Future[BinaryIO]:
        """Make a customer's page; the same errors as `model`."""
        return self._children.submit(KIND, run.team, lambda: self._file(run, "write_report", {"customer": customer}))

    def _file(
        self, run: SubmittedRun, function: str, values: Mapping[str, object], sent: SentRows | None = None
    ) -> BinaryIO:
        """Return the answer of a function of `extract_child`."""
        work = self._settings.work / run.id
        work.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=work, prefix="extract-") as name:
            folder = Path(name)
            # Rows that were sent are all that is read besides the run; a report reads the customer's rows.
            allowed = roots_variable(self._settings, run.team) if sent is None else {VARIABLE: name}
            if sent is not None:
                sent.write(folder)
            self._children.run(
                f"tuning.service.extract_child:{function}",
                {"run": run.run_directory, **values},
                environment={**allowed, **run_variable(run.id)},
                limits=LIMITS,
                folder=folder,
                names=self._settings.names(run.team, run.run_directory),
            )
            return open(folder / ANSWER, "rb")
