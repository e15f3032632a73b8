"""What the copy needs of a tracking store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tuning.tracking.models import ModelLogger
from tuning.tracking.tracked_runs import TrackedRun

ACTIVE = "active"
EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}  # MLflow's page opens on runs, not on chats


class RejectedError(Exception):
    """The store refuses this very run and always will; everything else goes on."""


class DeletedExperimentError(Exception):
    """The experiment is in MLflow's trash."""

    def __init__(self, name: str, number: str) -> None:
        super().__init__(
            f"The MLflow experiment {name!r} is deleted. Restore it "
            f"(`mlflow experiments restore -x {number}`) or use another experiment name; "
            "then `tuning mlflow sync` completes the copy."
        )


class Store(ABC):
    """Every method may raise: `RejectedError` for content, anything else for an outage (try again later).

    Attributes:
        batch: how many runs one `write` should get, as many as take about a second.
        note: what is to be said of how runs are written here; None when there is nothing.
    """

    batch: int = 1000
    note: str | None = None

    @abstractmethod
    def write(self, runs: Sequence[TrackedRun], done: Callable[[TrackedRun], None]) -> None:
        """Write runs, parents before their children. One that is already there is written again only when `replaces`
        of `tuning.tracking.tracked_runs` says so; then a study also loses the runs that `is_surplus` there names, and
        its trials the mark of the best. A study that goes on comes as a run, too.

        done: called for each run that is there, also when others fail.
        """

    @abstractmethod
    def mark_best(self, keys: Iterable[str]) -> None:
        """Tag runs as their study's best, after each `write`; those that are not there are ignored."""

    @abstractmethod
    def run_id(self, key: str) -> str:
        """MLflow's id of a run that was written here."""

    @abstractmethod
    def log_artifacts(self, key: str, folder: Path) -> None:
        """Add a folder's files to the artifacts of a run that was written here."""

    @abstractmethod
    def models(self) -> ModelLogger:
        """Where models are logged."""

    def settle(self) -> None:
        """Look again at what an outage may have written twice, and leave one run for each key; also at the end.

        Nothing where a `write` has happened once or not at all.
        """
        return
