"""Releases in MLflow's registry: what a version answers, aliases, and that a repeat changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from faulty_proxy import FaultyProxy
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient
from mlflow_records import tracking_in
from mlflow_server import MlflowServer
from postgres_server import PostgresServer, missing

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.definition.definition import Definition
from tuning.definition.given import definition_of
from tuning.runs.plan_file import frozen_definition
from tuning.serving.champion import champions_of, table_of
from tuning.serving.promoting import promote_run
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases
from tuning.serving.rollback import roll_back
from tuning.tracking import release_copy

FIELDS: dict[str, Any] = {
    "target": "y", "by": ["zone"], "trials": 1, "models": ["ridge"], "min_rows": 20, "name": "churn",
    "mlflow": False, "report": False, "portfolio": "none", "ensemble": "none",
}  # fmt: skip


def rows(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=80), "zone": np.repeat([1.0, 2.0], 40)})
    return frame.assign(y=2 * frame["a"] + 9 * (frame["zone"] == 1.0) + rng.normal(scale=0.1, size=80))


@pytest.fixture(scope="module")
def monday(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """A run of two zones with a model each."""
    folder = tmp_path_factory.mktemp("storage") / "monday"
    return TuneRunner(data=rows(0), **FIELDS).run(folder, in_process=True, progress=False)


@pytest.fixture
def releases(monday: RunResult, tmp_path: Path) -> Releases:
    """Champions with one release, of the run."""
    found = Releases("churn", tmp_path / "runs")
    promote_run(monday, found)
    return found


def copy(releases: Releases, uri: str, *more: str) -> str:
    done = CliRunner().invoke(main, ["mlflow", "sync", releases.directory.root, "--tracking-uri", uri, *more])
    assert done.exit_code == 0, done.output
    return done.output


def swapped(releases: Releases) -> Release:
    """Another release, in which each customer has the other's model."""
    one, other = champions_of(releases.champions(releases.current()))
    found = [replace(one, customer=other.customer), replace(other, customer=one.customer)]
    number = releases.next_number()
    return releases.place(Release(number, number - 1, REFRESH), table_of(found))


def versions(uri: str, name: str = "churn") -> dict[str, dict[str, str]]:
    return {str(each.version): each.tags for each in MlflowClient(uri).search_model_versions(f"name = '{name}'")}


def aliases(uri: str, name: str = "churn") -> dict[str, str]:
    return {alias: str(version) for alias, version in MlflowClient(uri).get_registered_model(name).aliases.items()}


def loaded(uri: str, place: str) -> Any:
    with tracking_in(uri):
        return mlflow.pyfunc.load_model(f"models:/{place}")


def check_answers(model: Any, monday: RunResult) -> None:
    """Each row has its own customer's answer, and a customer that nobody knows what the release gives to others."""
    new = rows(1).drop(columns="y").iloc[[0, 50, 1, 70]].assign(zone=[1, 2, 1, 3])
    answer = model.predict(new)
    assert list(answer["answer"]) == ["own", "own", "own", "constant"]
    expected = [*monday.model("1").predict(new[:1]), *monday.model("2").predict(new[1:2])]
    np.testing.assert_array_equal(answer["prediction"][:2], expected)
    assert list(answer.index) == list(new.index)


def test_a_release_is_a_version_that_answers_for_each_customer(
    releases: Releases, monday: RunResult, mlflow_database: str
) -> None:
    copy(releases, mlflow_database)
    assert aliases(mlflow_database) == {"champion": "1"}
    first = loaded(mlflow_database, "churn@champion")
    check_answers(first, monday)
    told = first.predict(rows(1)[:2], params={"interval": 0.8})
    expected = monday.model("1").predict(rows(1)[:2], interval=0.8)
    np.testing.assert_array_equal(told["prediction_low"], expected["prediction_low"])
    with pytest.raises(MlflowException, match="customer '1': columns are missing: 'a'"):
        first.predict(rows(1)[["zone"]])
    swapped(releases)
    roll_back(releases, 1)  # nobody has copied release 2 yet
    copy(releases, mlflow_database)
    assert aliases(mlflow_database) == {"champion": "3", "previous": "2"}
    before = versions(mlflow_database)
    assert {version: tags["tuning.release"] for version, tags in before.items()} == {"1": "1", "2": "2", "3": "3"}
    check_answers(loaded(mlflow_database, "churn/3"), monday)
    other = loaded(mlflow_database, "churn@previous").predict(rows(1)[:2])
    np.testing.assert_array_equal(other["prediction"], monday.model("2").predict(rows(1)[:2]))
    models = MlflowClient(mlflow_database).search_logged_models(["1"])
    assert len(models) == 2  # release 3 has the models of release 1
    copy(releases, mlflow_database)
    assert versions(mlflow_database) == before
    assert len(MlflowClient(mlflow_database).search_logged_models(["1"])) == 2


def test_a_copy_that_was_cut_short_is_completed_and_releases_that_nobody_copied_keep_their_numbers(
    releases: Releases, mlflow_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        swapped(releases)
    sync = ["mlflow", "sync", releases.directory.root, "--tracking-uri", mlflow_database, "--patience", "0"]
    for name in ("finalize_logged_model", "create_model_version", "set_registered_model_alias"):
        with monkeypatch.context() as broken:
            broken.setattr(MlflowClient, name, lambda *_, **__: (_ for _ in ()).throw(OSError("the network is down")))
            done = CliRunner().invoke(main, sync)
        assert (done.exit_code, "the network is down" in done.output) == (1, True)
    copy(releases, mlflow_database)
    assert aliases(mlflow_database) == {"champion": "4", "previous": "3"}
    assert list(versions(mlflow_database)) == ["4", "3"]


def test_a_registered_model_of_somebody_else_is_left_alone(releases: Releases, mlflow_database: str) -> None:
    MlflowClient(mlflow_database).create_registered_model("churn")
    given = ["mlflow", "sync", releases.directory.root, "--tracking-uri", mlflow_database]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 1
    assert "a registered model 'churn' that is not of these champions" in done.output
    assert versions(mlflow_database) == {}


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the definition of the promoted run says of MLflow: the run itself was not copied, which takes seconds."""
    said: dict[str, object] = {}

    def read(*given: Any) -> Definition:
        return definition_of(frozen_definition(*given), {"mlflow": {**said, "enabled": True}})

    monkeypatch.setattr(release_copy, "frozen_definition", read)
    return said


def test_a_promotion_whose_copy_fails_is_in_force_and_the_next_command_copies_it(
    monday: RunResult,
    tmp_path: Path,
    mlflow_database: str,
    asking: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asking["tracking_uri"] = "http://user:s3cret@127.0.0.1:9"
    monkeypatch.setattr(release_copy, "PATIENCE_S", 0.0)
    promote = ["promote", monday.directory.root, "--as", "churn", "--storage", str(tmp_path / "runs")]
    done = CliRunner().invoke(main, promote)
    assert (done.exit_code, done.stdout.startswith("release 1 of churn: ")) == (0, True)
    assert "MLflow is behind the releases of churn: " in done.stderr
    assert "s3cret" not in done.output
    asking["tracking_uri"] = mlflow_database
    done = CliRunner().invoke(main, promote)
    assert "has all of this already" in done.stdout
    assert f"release 1 of churn is in MLflow, {mlflow_database}: models:/churn@champion" in done.stderr
    assert aliases(mlflow_database) == {"champion": "1"}


WITHOUT_US = """
import json, sys
from pathlib import Path

import mlflow.pyfunc
import pandas as pd

sys.path[:] = [place for place in sys.path if not Path(place or ".", "tuning").exists()]
answer = mlflow.pyfunc.load_model(sys.argv[1]).predict(pd.read_parquet(sys.argv[2]))
from tuning.models import registry
print(json.dumps({"answer": answer["prediction"].tolist(), "code": registry.__file__}))
"""


@pytest.mark.slow
def test_a_release_brings_the_code_that_loads_it(
    releases: Releases, monday: RunResult, mlflow_database: str, tmp_path: Path
) -> None:
    copy(releases, mlflow_database)
    (model,) = MlflowClient(mlflow_database).search_logged_models(["1"])
    rows(1)[:2].to_parquet(tmp_path / "rows.parquet")
    command = [sys.executable, "-P", "-c", WITHOUT_US, model.artifact_location, str(tmp_path / "rows.parquet")]
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=outside, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert "tuning_service.zip" in said["code"]
    assert said["answer"] == monday.model("1").predict(rows(1)[:2]).tolist()


@pytest.mark.slow
def test_a_server_that_fails_and_comes_back_gets_each_release_once(
    releases: Releases, monday: RunResult, tmp_path: Path, migrated_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    with MlflowServer(tmp_path, migrated_database) as server:
        proxy = FaultyProxy(server.port)
        try:
            for fault in ("refuse", "error", "drop", "drop", None):
                proxy.set(fault)
                given = ["--tracking-uri", proxy.uri, "--patience", "0"]
                done = CliRunner().invoke(main, ["mlflow", "sync", releases.directory.root, *given])
                assert done.exit_code == (1 if fault else 0), done.output
            swapped(releases)
            copy(releases, proxy.uri)
            assert list(versions(server.uri)) == ["2", "1"]
            assert aliases(server.uri) == {"champion": "2", "previous": "1"}
            check_answers(loaded(server.uri, "churn@previous"), monday)
        finally:
            proxy.close()


@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_release_is_registered_in_postgresql(releases: Releases, monday: RunResult) -> None:
    server = PostgresServer()
    try:
        uri = server.uri("psycopg2")
        for _ in range(2):
            copy(releases, uri)
            assert list(versions(uri)) == ["1"]
        check_answers(loaded(uri, "churn@champion"), monday)
    finally:
        server.remove()
