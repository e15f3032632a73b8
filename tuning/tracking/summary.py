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
from tuning.tracking import mlflow_names
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.stores.store import Store
from tuning.tracking.tracked_runs import (
    KIND_TAG,
    NAME_TAG,
    NOTE_TAG,
    RUN_TAG,
    SEARCH_TAG,
    STATUS,
    SUMMARY,
    USER_TAG,
    TrackedRun,
    user,
)

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
    run = _run_of(summary, search)
    store.write([run], lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        for name, source in summary.artifacts.items():
            with contextlib.suppress(FileNotFoundError):  # it was removed since; the rest is worth having
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(directory.read(source))
        store.log_artifacts(run.key, Path(folder))


def _run_of(summary: Summary, search: TrackedSearch) -> TrackedRun:
    name = mlflow_names.text(search.run, mlflow_names.KEY_LIMIT)
    end = int(summary.ended * 1000)
    names = mlflow_names.keys(summary.metrics)
    tags = {
        NAME_TAG: name,
        USER_TAG: user(),
        KIND_TAG: SUMMARY,
        SEARCH_TAG: search.id(),
        RUN_TAG: search.run,
        **({NOTE_TAG: summary.note} if summary.note else {}),
        **{mlflow_names.key(tag): value for tag, value in summary.tags.items()},
    }
    return TrackedRun(
        key=search.id(),
        parent=None,
        kind=SUMMARY,
        name=name,
        status=STATUS[summary.state],
        start=int(summary.started * 1000),
        end=end,
        metrics=tuple((names[metric], float(value), 0, end) for metric, value in summary.metrics.items()),
        tags={tag: mlflow_names.text(value, mlflow_names.TAG_LIMIT) for tag, value in tags.items()},
    )
