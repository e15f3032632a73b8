"""A logged winner of every family, and a release, are served by `mlflow models serve` in environments of their own.

Needs a package index, and pyenv, with which MLflow makes environments. Families with the same requirements share one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mlflow import MlflowClient
from mlflow_records import RUN, study, until, write_part
from model_cases import CASES, data_of, make_frame

from tuning import TuneRunner
from tuning.cli.program import main
from tuning.models.base import SteppedFamily
from tuning.models.customer_model import CustomerModel
from tuning.models.member import Member
from tuning.models.registry import families
from tuning.serving.promoting import promote_run
from tuning.serving.releases import Releases
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copier import Copier
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.settings import Selection
from tuning.tracking.stores import open_store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("pyenv") is None, reason="MLflow makes environments with pyenv"),
]

# One task each: two classes where a family can do that.
TASKS = {name: "binary" if (name, "binary") in CASES else "regression" for name, _ in CASES}


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory, migrated_database: Path) -> tuple[str, dict[str, CustomerModel]]:
    """A store with a winner of each family, and the winners."""
    folder = tmp_path_factory.mktemp("logged")
    uri = f"sqlite:///{shutil.copy(migrated_database, folder / 'mlflow.db')}"
    directory, search = RunDirectory(str(folder / "run")), TrackedSearch("churn", RUN)
    winners, records = {}, []
    for name, task in TASKS.items():
        data, family = data_of(task), families()[name]
        encoder, rows, _ = data.whole(family)
        fitted = family.fit({}, rows, data.task, 5, 2 if isinstance(family, SteppedFamily) else None)
        alone = (Member(name, data.columns, encoder, fitted),)
        winners[name] = CustomerModel(name, data.task, alone, example=data.example)
        digest = winners[name].save(directory, f"models/{name}").sha256
        records.append(study(name, 1, family=name, model_path=f"models/{name}", model_sha256=digest))
    copier = Copier(directory, search, Selection(None), lambda: open_store(uri, search, str(folder / "mlruns")), True)
    copier.add(write_part(directory, "s", *records))
    copier.work()
    while copier.status.models_pending:
        copier.log_model()
    return uri, winners


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for environments, and to be in: this project cannot be imported from there."""
    return tmp_path_factory.mktemp("environments")


@pytest.mark.parametrize("family", TASKS)
def test_a_winner_is_served_from_its_own_requirements(
    family: str, logged: tuple[str, dict[str, CustomerModel]], elsewhere: Path
) -> None:
    uri, winners = logged
    found = MlflowClient(uri).search_logged_models(["1"], f"name = '{family}'")[0]
    frame = make_frame(TASKS[family]).drop(columns="y")
    with served(family, f"models:/{found.model_id}", uri, elsewhere) as port:
        ours = winners[family]
        assert ask(port, frame)["predictions"] == pytest.approx(ours.predict(frame).tolist())
        proba = {"method": "predict_proba"}
        if ours.task.classification and families()[family].probabilities({}):
            answer = ask(port, frame, params=proba)
            np.testing.assert_allclose(answer["predictions"], ours.predict_proba(frame))
        else:
            with pytest.raises(urllib.error.HTTPError, match="400") as refused:
                ask(port, frame, params=proba)
            assert "has no probabilities" in refused.value.read().decode()


def test_a_release_is_served_from_its_own_requirements(
    elsewhere: Path, tmp_path: Path, migrated_database: Path
) -> None:
    uri = f"sqlite:///{shutil.copy(migrated_database, tmp_path / 'mlflow.db')}"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=80), "zone": np.repeat([1, 2], 40)})
    frame["y"] = 2 * frame["a"] + 9 * (frame["zone"] == 1)
    given = {"by": ["zone"], "models": ["ridge"], "trials": 1, "min_rows": 20, "mlflow": False, "report": False}
    result = TuneRunner(data=frame, target="y", **given).run(tmp_path / "run", in_process=True, progress=False)
    releases = Releases("churn", tmp_path)
    promote_run(result, releases)
    done = CliRunner().invoke(main, ["mlflow", "sync", releases.directory.root, "--tracking-uri", uri])
    assert done.exit_code == 0, done.output
    with served("release", "models:/churn@champion", uri, elsewhere) as port:
        rows = ask(port, frame[["a", "zone"]].iloc[[0, 50]])["predictions"]
        expected = [result.model(name).predict(frame[["a"]].iloc[[row]])[0] for name, row in (("1", 0), ("2", 50))]
        assert [row["prediction"] for row in rows] == pytest.approx(expected)
        unknown = pd.DataFrame({"a": [0.5], "zone": [3]})
        assert [row["answer"] for row in ask(port, unknown)["predictions"]] == ["constant"]


@contextlib.contextmanager
def served(name: str, model: str, uri: str, elsewhere: Path) -> Iterator[int]:
    """The port of `mlflow models serve`, in an environment of the model's own requirements."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {**outside, "MLFLOW_ENV_ROOT": str(elsewhere), "MLFLOW_TRACKING_URI": uri}
    chosen = ["-m", model, "--env-manager", "virtualenv"]
    mlflow = [sys.executable, "-P", "-m", "mlflow", "models"]
    before, started = set(elsewhere.iterdir()), time.monotonic()
    made = subprocess.run(
        [*mlflow, "prepare-env", *chosen], cwd=elsewhere, env=environment, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr[-4000:]
    for new in set(elsewhere.iterdir()) - before:
        size = sum(path.stat().st_size for path in new.rglob("*") if path.is_file() and not path.is_symlink())
        print(f"{name}: environment of {size / 1e6:.0f} MB in {time.monotonic() - started:.0f} s")
    port, started = free_port(), time.monotonic()
    serve = [*mlflow, "serve", *chosen, "--port", str(port)]
    with (elsewhere / f"{name}.log").open("w") as log:
        server = subprocess.Popen(
            serve, cwd=elsewhere, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        until(lambda: answers(port) or server.poll() is not None, 120)
        assert server.poll() is None, (elsewhere / f"{name}.log").read_text()[-4000:]
        print(f"{name}: the server started in {time.monotonic() - started:.1f} s")
        yield port
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    try:
        return bool(urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5).status == 200)
    except (urllib.error.URLError, OSError):
        return False


def ask(port: int, frame: pd.DataFrame, **more: Any) -> Any:
    body = json.dumps({"dataframe_split": json.loads(frame.to_json(orient="split", index=False)), **more})
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/invocations", body.encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
