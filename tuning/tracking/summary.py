"""A search's run in MLflow that sums it up: figures, a text, and artifacts such as the leaderboard.

The summary lies in the run directory first, like the records, so that `tuning mlflow sync` finds it there.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tuning.records.schema import FINISHED
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.stores.store import Store
from tuning.tracking.tracked_runs import NOTE_TAG, RecordRuns

FOLDER = "mlflow"
SUMMARY_FILE = f"{FOLDER}/summary.json"


@dataclass(frozen=True, slots=True)
class Summary:
    """What the run of a search in MLflow shows.

    Attributes:
        started, ended: Seconds since 1970.
        state: `finished` when all studies have ended; `stopped` when a signal or `time_budget` ended the run before
            that; `failed` when the run could not go on.
        note: Markdown, shown as the run's description.
        artifacts: Name in MLflow → file in the run directory.
    """

    started: float
    ended: float
    state: str = FINISHED
    metrics: Mapping[str, float] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    artifacts: Mapping[str, str] = field(default_factory=dict)


def save_summary(directory: RunDirectory, summary: Summary, contents: Mapping[str, bytes]) -> None:
    """Write the summary into the run directory, and artifacts that are not files there yet (name → content)."""
    artifacts = dict(summary.artifacts)
    for name, content in contents.items():
        artifacts[name] = f"{FOLDER}/files/{name}"
        directory.write(artifacts[name], content)
    directory.write(SUMMARY_FILE, json.dumps({**asdict(summary), "artifacts": artifacts}, ensure_ascii=False).encode())


def write_summary(store: Store, directory: RunDirectory, search: TrackedSearch) -> None:
    """Write or replace the summary run and its artifacts."""
    summary = Summary(**json.loads(directory.read(SUMMARY_FILE)))
    tags = {**({NOTE_TAG: summary.note} if summary.note else {}), **summary.tags}
    run = RecordRuns(search).of_summary(summary.state, summary.started, summary.ended, summary.metrics, tags)
    store.write([run], lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        for name, source in summary.artifacts.items():
            with contextlib.suppress(FileNotFoundError):  # it was removed since; the rest is worth having
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(directory.read(source))
        store.log_artifacts(run.key, Path(folder))
