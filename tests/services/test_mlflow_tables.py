"""New databases, and which of all databases are written to in bulk."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from mlflow_records import by_name, settings_for, sync, without_bulk, write_parts
from sqlalchemy import create_engine

from tuning.storage.run_directory import RunDirectory
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.settings import (
    default_artifacts,
    default_tracking_uri,
    how_to_look,
    sqlite_uri,
    tracking_uri_of,
)
from tuning.tracking.stores import database, open_store
from tuning.tracking.stores.database import (
    client,
    database_file,
    engine_for,
    initialized,
    kept_database,
    prepare,
)
from tuning.tracking.stores.sql_store import BulkStore
from tuning.tracking.stores.tables import COLUMNS, OtherTablesError, read_tables
from tuning.tracking.summary import SUMMARY_FILE, Summary, save_summary


def test_a_new_database_is_made_whole_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new folder" / "100%20 what?.db"
    uri = sqlite_uri(str(path))
    assert not initialized(uri)
    assert not path.exists(), "asking has made it"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    prepare(uri)
    assert initialized(uri)
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
from tuning.tracking.copier import Copier
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.settings import Selection
from tuning.tracking.stores import open_store
directory, search = RunDirectory(sys.argv[2]), TrackedSearch("churn", "run")
copier = Copier(directory, search, Selection(None), lambda: open_store(sys.argv[1], search, sys.argv[2] + "/files"))
for part in sys.argv[3:]:
    copier.add(part)
copier.work()
print([name for name in ("mlflow", "ray", "pandas", "alembic") if name in sys.modules])
copier.finish()
assert copier.status.trials == 6 and not copier.status.pending
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
    assert artifacts == {"leaderboard.csv"}


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
    assert default_artifacts(odd, default_tracking_uri(odd)) == f"file://{tmp_path}/100%2520%20what%3F/mlruns"
    monkeypatch.chdir(tmp_path)
    assert default_artifacts(directory, "sqlite:///some/mlflow.db") == f"{tmp_path}/some/mlruns"


@pytest.mark.parametrize("name", ["a b", "100%20", "what?", "ünï#;&="])
def test_a_run_may_be_in_any_folder(name: str, tmp_path: Path, migrated_database: Path) -> None:
    directory = RunDirectory(str(tmp_path / name))
    directory.create()
    (tmp_path / name / "mlflow.db").write_bytes(migrated_database.read_bytes())
    opened = open_store(default_tracking_uri(directory), TrackedSearch("churn", "run"), None)
    assert isinstance(opened, BulkStore)
    with sqlite3.connect(tmp_path / name / "mlflow.db") as connection:
        assert ("churn",) in connection.execute("SELECT name FROM experiments").fetchall()


@pytest.mark.parametrize("uri", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused_with_the_way_out(uri: str) -> None:
    with pytest.raises(ValueError, match=r"in memory; name a file, such as sqlite:///mlflow\.db"):
        open_store(uri, TrackedSearch("churn", "run"), None)


def test_a_databases_error_is_told_without_its_statement(tmp_path: Path, mlflow_database: str) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    read_only = f"sqlite:///file:{mlflow_database.removeprefix('sqlite:///')}?mode=ro&uri=true"
    report = sync(settings_for(directory, read_only, "churn", "run"), write_parts(directory, 1, 2), patience=0)
    assert not report.complete
    assert report.error == "OperationalError: attempt to write a readonly database"


def test_a_database_of_an_older_mlflow_is_written_to_as_it_is(tmp_path: Path) -> None:
    revision = "acf3f17fdcc7"  # MLflow 2.8, which knows no workspaces
    uri = older_database(tmp_path, revision)
    directory = RunDirectory(str(tmp_path / "run"))
    report = sync(settings_for(directory, uri, "churn", "run"), write_parts(directory, 2, 3))
    assert report.complete
    assert report.note is None
    with sqlite3.connect(tmp_path / "older.db") as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (8,)
    upgrade(uri, "head")
    assert sorted(by_name(uri)) == sorted(["c0000", "c0001", *(f"c000{s}/000{n}" for s in range(2) for n in range(3))])
    assert by_name(uri)["c0000/0002"].data.metrics["score"] == pytest.approx(0.702)


def older_database(folder: Path, revision: str) -> str:
    """The URI of a database as an MLflow of that time has made it."""
    from mlflow.store.tracking.dbmodels.initial_models import Base

    uri = f"sqlite:///{folder / 'older.db'}"
    engine = create_engine(uri)
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO experiments VALUES (0, 'Default', 'mlruns/0', 'active')")
    engine.dispose()
    upgrade(uri, revision)
    return uri


def upgrade(uri: str, revision: str) -> None:
    """Run MLflow's migrations up to one of them."""
    import mlflow

    config = Config()
    config.set_main_option("script_location", str(Path(mlflow.__file__).parent / "store" / "db_migrations"))
    config.set_main_option("sqlalchemy.url", uri)
    command.upgrade(config, revision)


@pytest.mark.parametrize(
    ("name", "columns", "said"),
    [
        ("tags", "run_uuid, key, value, later TEXT, counted TEXT DEFAULT '' NOT NULL", None),
        ("tags", "run_uuid, key", "tags.value is missing"),
        ("tags", "run_uuid, key, value, more TEXT NOT NULL", "tags.more must have a value"),
        ("other", "one", "tags.run_uuid is missing, tags.key is missing, tags.value is missing"),
    ],
)
def test_tables_that_cannot_be_filled_are_named(name: str, columns: str, said: str | None, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        for table, needed in COLUMNS.items():
            if table != "tags":
                connection.execute(f"CREATE TABLE {table} ({', '.join(needed)})")
        connection.execute(f"CREATE TABLE {name} ({columns})")
    engine = engine_for(f"sqlite:///{tmp_path / 'other.db'}")
    if said is None:
        assert set(read_tables(engine)) == set(COLUMNS)
    else:
        with pytest.raises(OtherTablesError, match=f"^{said}$"):
            read_tables(engine)


def test_what_cannot_be_written_in_bulk_is_written_more_slowly_and_said(
    mlflow_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_bulk(monkeypatch)
    directory = RunDirectory(str(tmp_path / "run"))
    report = sync(settings_for(directory, mlflow_database, "churn", "run"), write_parts(directory, 1, 2))
    assert report.complete
    assert "tags.from_the_future is missing" in str(report.note)
    assert "times as long" in str(report.note)
    assert sorted(by_name(mlflow_database)) == ["c0000", "c0000/0000", "c0000/0001"]


@pytest.fixture
def made(migrated_database: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URIs of the databases that MLflow is asked to make; what it makes is there at once."""
    uris: list[str] = []

    def make(uri: str) -> None:
        uris.append(uri)
        shutil.copy(migrated_database, str(database_file(uri)))

    monkeypatch.setattr(database, "_create", make)
    return uris


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the empty database of this test is kept."""
    monkeypatch.setenv("TUNING_CACHE", str(tmp_path / "cache"))
    kept = kept_database()
    assert kept is not None
    assert kept.parent == tmp_path / "cache"
    return kept


def test_an_empty_database_is_made_once_and_kept(cache: Path, made: list[str], tmp_path: Path) -> None:
    for name in ("first", "second"):
        prepare(f"sqlite:///{tmp_path / name}.db", str(tmp_path / name))
    assert len(made) == 1
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]
    assert client(f"sqlite:///{tmp_path}/second.db").get_experiment("0").artifact_location == f"{tmp_path}/second/0"


@pytest.mark.parametrize("damage", [b"", b"no database", None], ids=["empty", "torn", "used"])
def test_a_damaged_empty_database_is_made_again(
    damage: bytes | None, cache: Path, made: list[str], tmp_path: Path, migrated_database: Path
) -> None:
    cache.parent.mkdir()
    cache.write_bytes(migrated_database.read_bytes() if damage is None else damage)
    if damage is None:
        client(f"sqlite:///{cache}").create_run("0")
    for name in ("first", "second"):
        prepare(f"sqlite:///{tmp_path / name}.db")
    assert len(made) == 1
    assert client(f"sqlite:///{tmp_path}/second.db").search_runs(["0"]) == []


@pytest.mark.parametrize("place", ["off", "a file", "~/nobody"])
def test_a_run_needs_no_cache(place: str, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TUNING_CACHE", str(tmp_path / place) if place == "a file" else place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for name in ("first", "second"):
        prepare(f"sqlite:///{tmp_path / name}.db")
        assert initialized(f"sqlite:///{tmp_path / name}.db")
    assert len(made) == 2
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".db") == ["a file"]
