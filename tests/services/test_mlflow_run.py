"""A run's copy in MLflow from end to end, and `tuning mlflow sync`."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_up import write_customers
from mlflow.tracking import MlflowClient
from mlflow_records import by_name, runs_in

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.definition import mlflow_options

CUSTOMERS = ("customer-01", "customer-02", "customer-loyal")
SEARCH = {"name": "demo", "customers": list(CUSTOMERS), "target": "churned", "trials": 3}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, migrated_database: Path) -> RunResult:
    """A small run in this process; its database is a copy of the session's, because making one takes seconds."""
    folder = tmp_path_factory.mktemp("run")
    write_customers(folder / "customers")
    shutil.copy(migrated_database, folder / "mlflow.db")
    runner = TuneRunner(
        **SEARCH,
        data=str(folder / "customers" / "*.csv"),
        seed=3,
        mlflow={"tracking_uri": f"sqlite:///{folder / 'mlflow.db'}?password=hunter2"},
    )
    return runner.run(str(folder / "weekly"), progress=False, in_process=True)


@pytest.fixture
def uri(done: RunResult) -> str:
    return f"sqlite:///{Path(done.directory.root).parent / 'mlflow.db'}"


def test_every_record_has_its_run(done: RunResult, uri: str) -> None:
    runs = by_name(uri, "demo")
    kinds = Counter(run.data.tags.get("tuning.kind", "trial") for run in runs.values())
    assert kinds == {"summary": 1, "study": len(CUSTOMERS), "trial": len(done.trial_records)}
    for record in done.trial_records:
        run = runs[f"{record.customer}/{record.trial:04d}"]
        assert run.data.metrics["score"] == record.score
        assert run.info.status != "RUNNING"
    for row in done.leaderboard().itertuples():
        run = runs[row.customer]
        assert run.data.tags["tuning.status"] == row.status
        if row.status == "ok":
            assert run.data.metrics["test_score"] == row.test_score


def test_the_summary_shows_the_leaderboard(done: RunResult, uri: str) -> None:
    summary = by_name(uri, "demo", "tags.tuning.kind = 'summary'")
    assert list(summary) == ["weekly"]
    run = summary["weekly"]
    assert run.data.metrics["customers"] == 3
    assert run.data.metrics["succeeded"] == 2
    assert "2 of 3 customers have a model" in run.data.tags["mlflow.note.content"]
    client = MlflowClient(uri)
    paths = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert paths == {"leaderboard.csv", "report.html", "plan.json", "definition.yaml", "plots"}
    plots = {item.path for item in client.list_artifacts(run.info.run_id, "plots")}
    assert plots == {"plots/gain.svg", "plots/baseline-and-tuned.svg"}


def test_no_secret_reaches_mlflow(done: RunResult) -> None:
    folder = Path(done.directory.root).parent
    files = [path for path in folder.rglob("*") if path.is_file() and "mlruns" in path.parts]
    assert [path.name for path in files if path.name == "definition.yaml"]
    for path in [folder / "mlflow.db", *files]:
        assert b"hunter2" not in path.read_bytes(), path


def test_sync_copies_a_run_into_another_store(done: RunResult, uri: str, mlflow_database: str) -> None:
    call = ["mlflow", "sync", done.directory.root, "--tracking-uri", mlflow_database, "--output", "json"]
    answer = CliRunner().invoke(main, call)
    assert answer.exit_code == 0, answer.output
    report = json.loads(answer.stdout)
    assert report["complete"] is True
    assert report["status"]["trials"] == len(done.trial_records)
    assert report["status"]["models"] == 2
    assert len(runs_in(mlflow_database, "demo")) == len(runs_in(uri, "demo"))


def test_sync_says_what_is_missing_and_why(done: RunResult) -> None:
    call = ["mlflow", "sync", done.directory.root, "--tracking-uri", "http://me:hunter2@127.0.0.1:1", "--patience", "0"]
    answer = CliRunner().invoke(main, call)
    assert answer.exit_code == 1
    assert "incomplete" in answer.stderr
    assert "refused" in answer.stderr
    assert "hunter2" not in answer.output
    assert "Traceback" not in answer.output


def test_sync_of_something_else_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["mlflow", "sync", str(tmp_path)])
    assert answer.exit_code == 6
    assert "is not a run directory" in answer.stderr


def test_the_same_folder_with_another_run_is_another_search(done: RunResult, uri: str, tmp_path: Path) -> None:
    again = {**SEARCH, "customers": ["customer-01"], "trials": 1, "search_space": "logistic", "seed": 4}
    data = str(Path(done.directory.root).parent / "customers" / "*.csv")
    copied = {"tracking_uri": uri, "record_models": "none"}
    TuneRunner(**again, data=data, mlflow=copied, report=False).run(
        str(tmp_path / "weekly"), progress=False, in_process=True
    )
    names = Counter(run.info.run_name for run in runs_in(uri, "demo"))
    assert names["weekly"] == 2
    assert names["customer-01/0000"] == 2


def test_without_a_word_everything_is_in_the_run_and_nothing_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_customers(tmp_path / "customers")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    definition = tmp_path / "churn.yaml"
    definition.write_text("data: customers/customer-01.csv\ntarget: churned\ntrials: 2\nsearch_space: logistic\n")
    run = tmp_path / "runs" / "weekly"
    wishes = ["--set", "mlflow.record_models=none", "--set", "report=false", "--progress=none", "--in-process"]
    done = CliRunner().invoke(main, ["run", str(definition), "--run-dir", str(run), *wishes])
    assert done.exit_code == 0, done.output
    assert f"mlflow ui --backend-store-uri sqlite:///{run}/mlflow.db" in done.output
    assert len(by_name(f"sqlite:///{run}/mlflow.db", "churn")) == 4
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert [path.name for path in (run / "mlruns").iterdir()] == [
        each.info.run_id for each in runs_in(f"sqlite:///{run}/mlflow.db", "churn", "tags.tuning.kind = 'summary'")
    ]


def test_of_very_many_studies_each_has_its_best_trial_only(
    tmp_path: Path, migrated_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow_options, "MANY_STUDIES", 2)
    write_customers(tmp_path / "customers")
    shutil.copy(migrated_database, tmp_path / "mlflow.db")
    where = {"tracking_uri": f"sqlite:///{tmp_path / 'mlflow.db'}", "record_models": "none"}
    fields = {**SEARCH, "search_space": "logistic", "mlflow": where, "report": False}
    runner = TuneRunner(**fields, data=str(tmp_path / "customers" / "*.csv"))
    result = runner.run(str(tmp_path / "run"), progress=False, in_process=True)
    runs = by_name(where["tracking_uri"], "demo")
    kinds = Counter(run.data.tags.get("tuning.kind", "trial") for run in runs.values())
    assert kinds == {"summary": 1, "study": 3, "trial": len({record.customer for record in result.trial_records})}
