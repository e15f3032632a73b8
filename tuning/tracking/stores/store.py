"""What the copy needs of a tracking store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tuning.tracking.tracked_runs import TrackedRun

if TYPE_CHECKING:
    from mlflow import MlflowClient


class RejectedError(Exception):
    """The store refuses this very run and always will; everything else goes on."""


class Store(Protocol):
    """Every method may raise: `RejectedError` for content, anything else for an outage (try again later)."""

    experiment: str
    """The experiment's id."""
    batch: int
    """How many runs one `write` should get: as many as take about a second."""
    niceness: int
    """How much further the copying process steps back while fits want the cores, by what a run costs here."""

    @property
    def client(self) -> MlflowClient:
        """MLflow's own client, for what is not a matter of many rows."""

    def write(self, runs: Sequence[TrackedRun], done: Callable[[TrackedRun], None]) -> None:
        """Write runs, parents before their children. One that is already there is written again only
        when `runs.replaces` says so.

        done: called for each run that is there, also when others fail.
        """

    def mark(self, tags: Mapping[str, Mapping[str, str]]) -> None:
        """Set tags of runs that are already there (key → tags); unknown keys are ignored."""

    def run_id(self, key: str) -> str:
        """MLflow's id of a run that was written in this session."""

    def log_artifacts(self, key: str, folder: Path) -> None:
        """Add a folder's files to the artifacts of a run that was written in this session."""

    def settle(self) -> None:
        """Look again at what an outage may have written twice, and leave one run for each key."""
