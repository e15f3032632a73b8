"""A search's summary run: its figures, and its leaderboard, plan, definition and plots as artifacts.

The summary lies in the run directory first, like the records, so that `tuning mlflow sync` finds it there.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tuning.records.schema import FINISHED
from tuning.runs.outcome import LEADERBOARD_FILE
from tuning.storage.run_directory import RunDirectory
from tuning.tracking import mlflow_limits
from tuning.tracking.identity import TrackedSearch
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

    started, ended: seconds since 1970. state: `finished` when all studies have ended; `stopped` when a signal or
    `time_budget` ended the run before that; `failed` when the run could not go on.

    note: Markdown, shown as the run's description. artifacts: name in MLflow → file in the run directory.
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


def read_summary(directory: RunDirectory) -> Summary:
    """The summary in the run directory."""
    return Summary(**json.loads(directory.read(SUMMARY_FILE)))


def write_summary(store: Store, directory: RunDirectory, search: TrackedSearch) -> None:
    """Write or replace the summary run and its artifacts."""
    summary = read_summary(directory)
    run = _run_of(summary, search)
    store.write([run], lambda _: None)
    contents = {}
    for name, source in summary.artifacts.items():
        with contextlib.suppress(FileNotFoundError):  # it was removed since; the rest is worth having
            contents[name] = directory.read(source)
    if LEADERBOARD_FILE in contents:
        with contextlib.suppress(Exception):  # a plot is never worth a summary
            contents |= leaderboard_plots(contents[LEADERBOARD_FILE])
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        store.log_artifacts(run.key, Path(folder))


@cache
def warm_up_plots() -> None:
    """Begin to import what drawing needs, in a thread of the lowest priority; later calls do nothing.

    Its third of a core-second is spent beside the search, because a run waits for the plots at its end.
    """
    threading.Thread(target=_import_plots, name="import-plots", daemon=True).start()


def _import_plots() -> None:
    with contextlib.suppress(OSError):  # not every system has priorities of threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    for name in ("matplotlib.backends.backend_svg", "tuning.runs.plots"):
        importlib.import_module(name)


def leaderboard_plots(board: bytes) -> dict[str, bytes]:
    """name → SVG: the gain of every customer, and tuned against baseline scores; {} when nothing was scored.

    board: the leaderboard as CSV.
    """
    rows = pyarrow.csv.read_csv(
        io.BytesIO(board),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=_DRAWN, include_columns=list(_DRAWN), include_missing_columns=True
        ),
    )
    if not pc.any(pc.and_(rows["test_score"].is_valid(), rows["baseline_test_score"].is_valid())).as_py():
        return {}
    from tuning.reporting.figure import drawn_svg
    from tuning.runs import plots

    metric = next(iter(rows["metric"].unique().drop_null().to_pylist()), "score")
    drawn = {"plots/baseline-and-tuned.svg": drawn_svg(lambda ax: plots.baseline_and_tuned(rows, metric, ax))}
    if rows["gain"].null_count < len(rows):
        drawn["plots/gain.svg"] = drawn_svg(lambda ax: plots.gains(rows, metric, ax))
    return drawn


_DRAWN = {"metric": pa.string(), **dict.fromkeys(("test_score", "baseline_test_score", "gain"), pa.float64())}


def _run_of(summary: Summary, search: TrackedSearch) -> TrackedRun:
    name = mlflow_limits.text(search.run, mlflow_limits.KEY_LIMIT)
    end = int(summary.ended * 1000)
    names = mlflow_limits.keys(summary.metrics)
    tags = {
        NAME_TAG: name,
        USER_TAG: user(),
        KIND_TAG: SUMMARY,
        SEARCH_TAG: search.id(),
        RUN_TAG: search.run,
        **{mlflow_limits.key(tag): value for tag, value in summary.tags.items()},
    }
    if summary.note:
        tags[NOTE_TAG] = summary.note
    return TrackedRun(
        key=search.id(),
        parent=None,
        kind=SUMMARY,
        name=name,
        status=STATUS[summary.state],
        start=int(summary.started * 1000),
        end=end,
        metrics=tuple((names[metric], float(value), 0, end) for metric, value in summary.metrics.items()),
        tags={tag: mlflow_limits.text(value, mlflow_limits.TAG_LIMIT) for tag, value in tags.items()},
    )
