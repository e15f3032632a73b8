"""New databases, and the tables that the bulk writer knows: both are what MLflow itself would have made."""

from __future__ import annotations

import importlib.metadata
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow_records import write_parts
from sqlalchemy import Table

from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.sync import sync
from tuning.tracking.identity import Search, experiment_name
from tuning.tracking.settings import (
    default_artifacts,
    default_tracking_uri,
    how_to_look,
    settings_for,
    sqlite_uri,
    tracking_uri_of,
)
from tuning.tracking.stores import tables
from tuning.tracking.stores.database import client, database_file, prepare, revision
from tuning.tracking.stores.opening import open_store
from tuning.tracking.stores.schema import HEAD, STATEMENTS, create_database, mlflows_own, statements_of
from tuning.tracking.stores.sql_store import TESTED_REVISIONS, BulkStore
from tuning.tracking.summary.summary import SUMMARY_FILE, Summary, save_summary

MODELS = {
    "SqlExperiment": tables.EXPERIMENTS,
    "SqlExperimentTag": tables.EXPERIMENT_TAGS,
    "SqlRun": tables.RUNS,
    "SqlParam": tables.PARAMS,
    "SqlMetric": tables.METRICS,
    "SqlLatestMetric": tables.LATEST,
    "SqlTag": tables.TAGS,
}


@pytest.mark.parametrize(("name", "ours"), MODELS.items(), ids=MODELS)
def test_our_tables_are_those_of_mlflows_models(name: str, ours: Table) -> None:
    from mlflow.store.tracking.dbmodels import models

    theirs = getattr(models, name).__table__
    assert ours.name == theirs.name
    assert {column.name for column in ours.primary_key} == {column.name for column in theirs.primary_key}
    for column in theirs.columns:
        if column.name not in ours.columns:
            assert column.nullable, f"{name}.{column.name} must have a value, and we give none"
            continue
        known = ours.columns[column.name]
        assert known.nullable == column.nullable
        assert type(known.type) is type(column.type)
        assert getattr(known.type, "length", None) == getattr(column.type, "length", None)
    assert {column.name for column in ours.columns} <= {column.name for column in theirs.columns}


def test_a_new_database_is_made_whole_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new folder" / "100%20 what?.db"
    uri = sqlite_uri(str(path))
    assert revision(uri) is None
    assert not path.exists(), "asking has made it"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    prepare(uri)
    assert revision(uri) in TESTED_REVISIONS
    experiments = client(uri).search_experiments()
    assert [each.artifact_location for each in experiments] == [str(path.parent / "mlruns" / "0")]
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    before = path.read_bytes()
    prepare(uri)
    assert path.read_bytes() == before


def test_copying_into_a_known_database_imports_no_mlflow(mlflow_database: str, tmp_path: Path) -> None:
    """Its imports cost two seconds of CPU beside the fits."""
    code = """
import sys
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.copier import Copier
from tuning.tracking.identity import Search
from tuning.tracking.selection import Selection
from tuning.tracking.stores.opening import open_store
directory, search = RunDirectory(sys.argv[2]), Search("churn", "run")
copier = Copier(directory, search, Selection(None), lambda: open_store(sys.argv[1], search, sys.argv[2] + "/files"))
for part in sys.argv[3:]:
    copier.add(part)
copier.work()
print([name for name in ("mlflow", "ray", "pandas", "alembic") if name in sys.modules])
copier.finish()
assert copier.progress.trials == 6 and not copier.pending
print([name for name in ("mlflow", "ray", "pandas", "alembic") if name in sys.modules])
"""
    directory = RunDirectory(str(tmp_path / "run"))
    board = b"customer,metric,test_score,baseline_test_score,gain\nacme,r2,0.8,0.7,0.1\n"
    save_summary(directory, Summary(1.0, 2.0), {"leaderboard.csv": board})
    parts = [*write_parts(directory, 2, 3), SUMMARY_FILE]
    done = subprocess.run(
        [sys.executable, "-c", code, mlflow_database, directory.uri, *parts],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["[]", "[]"]
    runs = client(mlflow_database).search_runs(
        [client(mlflow_database).get_experiment_by_name("churn").experiment_id], "tags.tuning.kind = 'summary'"
    )
    experiment = client(mlflow_database).get_experiment_by_name("churn")
    assert experiment.tags == {"mlflow.experimentKind": "custom_model_development"}
    assert experiment.artifact_location == f"{directory.uri}/files"
    artifacts = {item.path for item in client(mlflow_database).list_artifacts(runs[0].info.run_id)}
    assert artifacts == {"leaderboard.csv", "plots"}


def test_what_a_user_does_to_see_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = RunDirectory(str(tmp_path / "a run"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    own = tracking_uri_of(directory, None)
    assert own == f"sqlite:///{tmp_path}/a run/mlflow.db"
    assert default_artifacts(directory, own) == f"{tmp_path}/a run/mlruns"
    assert how_to_look(own, "churn") == f"mlflow ui --backend-store-uri '{own}'"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:secret@tracking")
    assert how_to_look(tracking_uri_of(directory, None), "churn") == "https://me:***@tracking (experiment churn)"
    chosen = tracking_uri_of(directory, "postgresql://me:secret@db/mlflow")
    assert "secret" not in how_to_look(chosen, "churn")
    assert default_artifacts(directory, chosen) == f"{tmp_path}/a run/mlruns"
    odd = RunDirectory(str(tmp_path / "100%20 what?"))
    assert database_file(tracking_uri_of(odd, default_tracking_uri(odd))) == tmp_path / "100%20 what?" / "mlflow.db"
    assert default_artifacts(odd, default_tracking_uri(odd)) == f"{tmp_path}/100%20 what?/mlruns"
    monkeypatch.chdir(tmp_path)
    assert default_artifacts(directory, "sqlite:///some/mlflow.db") == f"{tmp_path}/some/mlruns"


@pytest.mark.parametrize("name", ["a b", "100%20", "what?", "ünï#;&="])
def test_a_run_may_be_in_any_folder(name: str, tmp_path: Path, migrated_database: Path) -> None:
    directory = RunDirectory(str(tmp_path / name))
    directory.create()
    (tmp_path / name / "mlflow.db").write_bytes(migrated_database.read_bytes())
    opened = open_store(default_tracking_uri(directory), Search("churn", "run"), None)
    assert isinstance(opened, BulkStore)
    with sqlite3.connect(tmp_path / name / "mlflow.db") as connection:
        assert ("churn",) in connection.execute("SELECT name FROM experiments").fetchall()


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused_with_the_way_out(uri: str) -> None:
    with pytest.raises(ValueError, match=r"in memory; name a file, such as sqlite:///mlflow\.db"):
        open_store(uri, Search("churn", "run"), None)


def test_a_databases_error_is_told_without_its_statement(tmp_path: Path, mlflow_database: str) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    read_only = f"sqlite:///file:{mlflow_database.removeprefix('sqlite:///')}?mode=ro&uri=true"
    report = sync(settings_for(directory, read_only, "churn", "run"), write_parts(directory, 1, 2), patience=0)
    assert not report.complete
    assert report.status.error == "OperationalError: attempt to write a readonly database"


def test_an_experiments_name_is_one_that_every_database_takes() -> None:
    assert experiment_name("churn") == "churn"
    assert experiment_name(" a\0b ") == "a␀b"
    assert experiment_name(" ") == "unnamed"
    assert len(experiment_name("x" * 600)) == 250


def test_the_statements_for_a_new_database_are_what_the_installed_mlflow_makes(tmp_path: Path) -> None:
    """Write them again with `python -m tuning.tracking.stores.schema` after an upgrade."""
    made = HEAD.format(version=importlib.metadata.version("mlflow")) + statements_of(mlflows_own(tmp_path))
    assert in_any_order(STATEMENTS.read_text(encoding="utf-8")) == in_any_order(made)


def in_any_order(statements: str) -> list[str]:
    """SQLAlchemy writes a table's checks in an order of their hashes, which differs between processes."""
    return sorted(line.strip().removesuffix(",") for line in statements.splitlines())


def test_another_version_of_mlflow_makes_its_database_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.tracking.stores.schema.version", lambda name: "99.0")
    assert not create_database(tmp_path / "mlflow.db", "mlruns")
    assert not (tmp_path / "mlflow.db").exists()
