"""The run in MLflow that sums up a run: written while it goes on, and written anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient
from mlflow_records import MINUTES, RUN, by_name, live_copy, open_run, settings_for, sync, trial, write_part

from tuning.records.schema import STOPPED
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.summary import SUMMARY_FILE, Summary, save_summary


@pytest.mark.timeout(2 * MINUTES)
def test_the_summary_run(mlflow_database: str, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    directory.write("definition.yaml", b"name: churn\n")
    part = write_part(directory, "trials-a", trial())
    first = Summary(
        started=1_795_000_000.0,
        ended=1_795_000_060.0,
        state=STOPPED,
        metrics={"customers": 1, "trials": 1},
        tags={"tuning.version": "0.1.0"},
        note="**interrupted**",
        artifacts={"definition.yaml": "definition.yaml", "gone.txt": "gone.txt"},
    )
    save_summary(directory, first, {"leaderboard.csv": b"customer\n", "plots/gain.svg": b"<svg/>"})
    with open_run(directory):
        status = live_copy(directory, mlflow_database).close(MINUTES)
    assert (status.pending, status.error) == (0, None)
    run = by_name(mlflow_database)[RUN]
    assert run.info.status == "KILLED"
    assert run.data.tags["mlflow.note.content"] == "**interrupted**"
    client = MlflowClient(mlflow_database)
    assert {item.path for item in client.list_artifacts(run.info.run_id)} == {
        "definition.yaml",
        "leaderboard.csv",
        "plots",
    }
    assert [item.path for item in client.list_artifacts(run.info.run_id, "plots")] == ["plots/gain.svg"]

    last = Summary(started=first.started, ended=first.ended + 60, metrics={"customers": 1, "trials": 9}, note="done")
    save_summary(directory, last, {"leaderboard.csv": b"customer\nacme\n"})
    assert sync(settings_for(directory, mlflow_database, "churn", RUN), [part, SUMMARY_FILE]).complete
    again = by_name(mlflow_database)[RUN]
    assert (again.info.run_id, again.info.status) == (run.info.run_id, "FINISHED")
    assert again.data.metrics["trials"] == 9
    local = client.download_artifacts(run.info.run_id, "leaderboard.csv", str(tmp_path))
    assert Path(local).read_text() == "customer\nacme\n"
    assert json.loads(directory.read("mlflow/summary.json"))["note"] == "done"
