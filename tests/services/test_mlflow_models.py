"""Winners as MLflow models, and the summary run with its artifacts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from mlflow.tracking import MlflowClient
from mlflow_records import MINUTES, RUN, by_name, follow, open_run, settings_for, study, tracking_in, until, write_part
from model_cases import CASES, data_of, make_frame
from paths import ROOT

from tuning import TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import RunError
from tuning.models.base import SteppedFamily
from tuning.models.customer_model import CustomerModel
from tuning.models.member import Member
from tuning.models.model_files import describe_model
from tuning.models.pooled import FittedForm, PooledMember, PooledModel, RunPool, TargetScale
from tuning.models.registry import families
from tuning.runs.pool_file import read_pool, write_pool
from tuning.storage.packs import PackWriter
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copier import Copier
from tuning.tracking.loader import Predictor
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.model_folder import requirements, save_winner
from tuning.tracking.settings import CopyStatus, Selection, logs_models
from tuning.tracking.stores import open_store
from tuning.tracking.tracked_runs import KEY_TAG, SEARCH_TAG

SEARCH = TrackedSearch("churn", RUN)
NAMES = sorted({name for name, _ in CASES})
ONE_TASK_EACH = [
    (name, tasks[number % len(tasks)])
    for number, name in enumerate(NAMES)
    for tasks in [[task for other, task in CASES if other == name]]
]


def save_model(directory: RunDirectory, name: str, task: str, folder: str) -> tuple[CustomerModel, str]:
    data, family = data_of(task), families()[name]
    encoder, rows, _ = data.whole(family)
    fitted = family.fit({}, rows, data.task, 5, 2 if isinstance(family, SteppedFamily) else None)
    model = CustomerModel(folder, data.task, (Member(name, data.columns, encoder, fitted),), example=data.example)
    return model, model.save(directory, f"models/{folder}").sha256


def pooled_member(directory: RunDirectory) -> PooledMember:
    """A member that refers to the files of the run's pool."""
    data, family = data_of("binary"), families()["catboost"]
    pool = PooledModel(data.task, data.columns, data.whole(family)[0], "catboost")
    rows = replace(pool.rows(data.raw, TargetScale(shares=(0.6, 0.4))), y=data.y)
    fitted = replace(pool, fitted=family.fit({}, rows, data.task, 5, 2))
    write_pool(directory, RunPool(None, (FittedForm(fitted, fitted),)))
    found = read_pool(directory)
    assert found is not None
    assert found.whole is not None
    return found.whole.member(TargetScale(shares=(0.6, 0.4)))


def logged(uri: str) -> dict[str, Any]:
    client = MlflowClient(uri)
    found = client.get_experiment_by_name("churn")
    models = client.search_logged_models([found.experiment_id], max_results=50)
    return {model.name: model for model in models}


def copier_for(uri: str, directory: RunDirectory, models: bool = True) -> Copier:
    return Copier(directory, SEARCH, Selection(None), lambda: open_store(uri, SEARCH, directory.path("mlruns")), models)


def log_all(copier: Copier) -> None:
    copier.work()
    copier.finish()
    while copier.status.models_pending:
        copier.log_model()


def test_every_family_predicts_what_ours_predicts(mlflow_database: str, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    models, records = {}, []
    for name, task in ONE_TASK_EACH:
        folder = f"{name}-{task}"
        models[folder], digest = save_model(directory, name, task, folder)
        records.append(study(folder, 1, family=name, model_path=f"models/{folder}", model_sha256=digest))
    several = [models[f"{name}-binary"] for name in NAMES if f"{name}-binary" in models]
    members = tuple(model.members[0] for model in several if families()[model.family].probabilities({}))
    together = models["all-binary"] = replace(several[0], customer="all-binary", members=members)
    saved = together.save(directory, "models/all-binary")
    of_them = json.dumps([{"trial": 0, "family": member.family, "weight": 1.0} for member in members])
    records.append(
        study("all-binary", 1, model_path=saved.path, model_sha256=saved.sha256, ensemble=of_them, ensemble_score=0.9)
    )
    pooled = models["pooled-binary"] = replace(
        several[0], customer="pooled-binary", members=(several[0].members[0], pooled_member(directory))
    )
    saved = pooled.save(directory, "models/pooled-binary")
    records.append(study("pooled-binary", 1, model_path=saved.path, model_sha256=saved.sha256, ensemble=of_them))
    copier = copier_for(mlflow_database, directory)
    copier.add(write_part(directory, "s", *records))
    log_all(copier)
    assert copier.status.rejected == 0
    directory.remove_folder("pool")  # the models in MLflow have brought it along
    with tracking_in(mlflow_database):
        for folder, ours in models.items():
            task = folder.rpartition("-")[2]
            frame = make_frame(task)
            client = MlflowClient(mlflow_database)
            run = by_name(mlflow_database)[folder] if folder == next(iter(models)) else None
            found = client.search_logged_models(["1"], f"name = '{folder}'")[0]
            theirs = mlflow.pyfunc.load_model(f"models:/{found.model_id}")
            np.testing.assert_array_equal(theirs.predict(frame), ours.predict(frame), err_msg=folder)
            if ours.task.classification and all(member.kind.probabilities({}) for member in ours.members):
                proba = theirs.predict(frame, params={"method": "predict_proba"})
                np.testing.assert_allclose(proba, ours.predict_proba(frame), rtol=1e-9, err_msg=folder)
            assert theirs.metadata.signature is not None
            assert theirs.metadata.signature.inputs.input_names() == [column.name for column in ours.columns]
            example = theirs.input_example
            assert len(example) == 5
            assert len(theirs.predict(example)) == 5
            if run is not None:
                assert found.source_run_id == run.info.run_id
                assert [output.model_id for output in run.outputs.model_outputs] == [found.model_id]
                assert {metric.key for metric in found.metrics} >= {"cv_score", "test_score"}
                assert found.params["family"] == ours.family
                assert found.tags["tuning.final_fit"] == "search"
    files = [path.name for path in Path(directory.path("mlruns")).rglob("*") if path.is_file()]
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".joblib"))]
    for pinned in Path(directory.path("mlruns")).rglob("requirements.txt"):
        assert "mlflow-skinny==" in pinned.read_text()
        assert "tuning-service" not in pinned.read_text()


def test_a_packed_model_is_logged_like_any_other(mlflow_database: str, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    data, family = data_of("regression"), families()["ridge"]
    encoder, rows, _ = data.whole(family)
    fitted = family.fit({}, rows, data.task, 5)
    model = CustomerModel("acme", data.task, (Member("ridge", data.columns, encoder, fitted),), example=data.example)
    writer = PackWriter(directory)
    saved = model.save(writer, writer.folder("models", "acme"))
    writer.flush()
    record = study("acme", 1, family="ridge", model_path=saved.path, model_sha256=saved.sha256)
    copier = copier_for(mlflow_database, directory)
    copier.add(write_part(directory, "s", record))
    log_all(copier)
    (found,) = logged(mlflow_database).values()
    with tracking_in(mlflow_database):
        theirs = mlflow.pyfunc.load_model(f"models:/{found.model_id}")
    assert np.array_equal(theirs.predict(data.example), model.predict(data.example))


def test_a_model_is_logged_once_and_one_cut_short_is_made_again(mlflow_database: str, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    _, digest = save_model(directory, "ridge", "regression", "acme")
    part = write_part(directory, "s", study("acme", 1, family="ridge", model_path="models/acme", model_sha256=digest))
    opened = open_store(mlflow_database, SEARCH, directory.path("mlruns"))
    logger = opened.models()
    tags = {KEY_TAG: SEARCH.id("acme"), SEARCH_TAG: SEARCH.id()}
    broken = logger.client.create_logged_model(opened.experiment, name="acme", tags=tags)
    for _ in range(2):
        copier = copier_for(mlflow_database, directory)
        copier.add(part)
        log_all(copier)
        assert copier.status.models == 1
        models = logged(mlflow_database)
        assert list(models) == ["acme"]
        assert models["acme"].model_id != broken.model_id
        assert models["acme"].status == "READY"


def test_a_winner_is_logged_while_the_run_goes_on(
    mlflow_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of the run then does not wait for it."""
    ready, search = threading.Event(), MlflowClient.search_logged_models
    monkeypatch.setattr(MlflowClient, "search_logged_models", lambda *a, **k: (search(*a, **k), ready.set())[0])
    directory = RunDirectory(str(tmp_path / "run"))
    directory.create()
    _, digest = save_model(directory, "ridge", "regression", "acme")
    seen: list[CopyStatus] = []
    settings = settings_for(directory, mlflow_database, "churn", RUN, models=True)
    often = Timing(mlflow_look_s=0.05)
    with open_run(directory) as lease:
        thread = threading.Thread(target=lambda: follow(settings, progress=seen.append, timing=often))
        thread.start()
        assert ready.wait(MINUTES)  # MLflow's client is loaded before there is a winner
        record = study("acme", 1, family="ridge", model_path="models/acme", model_sha256=digest)
        write_part(directory, "studies-a", record)
        until(lambda: bool(seen) and seen[-1].models == 1)
        assert thread.is_alive()
        lease.release()
        thread.join(MINUTES)
    assert set(logged(mlflow_database)) == {"acme"}


def test_a_study_that_went_on_gets_its_new_model(mlflow_database: str, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    _, old = save_model(directory, "ridge", "regression", "acme/1")
    _, new = save_model(directory, "lasso", "regression", "acme/2")
    before = study("acme", 1, family="ridge", model_path="models/acme/1", model_sha256=old)
    after = study("acme", 2, family="lasso", model_path="models/acme/2", model_sha256=new, seconds=99.0)
    parts = [write_part(directory, "a", before), write_part(directory, "b", after)]
    for given in (parts[:1], parts):
        copier = copier_for(mlflow_database, directory)
        for part in given:
            copier.add(part)
        log_all(copier)
    models = MlflowClient(mlflow_database).search_logged_models(["1"])
    assert [model.params["family"] for model in models] == ["lasso"]


def test_a_damaged_model_is_told_and_keeps_nobody_back(mlflow_database: str, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    _, digest = save_model(directory, "ridge", "regression", "acme")
    save_model(directory, "ridge", "regression", "beta")
    copier = copier_for(mlflow_database, directory)
    good = study("acme", 1, family="ridge", model_path="models/acme", model_sha256=digest)
    copier.add(
        write_part(
            directory,
            "s",
            study("beta", 1, model_path="models/beta", model_sha256="0" * 64),
            good,
            study("gone", 1, model_path="models/gone"),
        )
    )
    log_all(copier)
    assert list(logged(mlflow_database)) == ["acme"]
    assert copier.status.rejected == 2
    assert "beta" in str(copier.status.error) or "gone" in str(copier.status.error)


def test_a_server_without_models_gets_everything_else(
    mlflow_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.exceptions import MlflowException
    from mlflow.protos.databricks_pb2 import ENDPOINT_NOT_FOUND

    def answer_of_mlflow_2(*_: Any, **__: Any) -> None:
        raise MlflowException("404 Not Found", error_code=ENDPOINT_NOT_FOUND)

    monkeypatch.setattr(MlflowClient, "search_logged_models", answer_of_mlflow_2)
    directory = RunDirectory(str(tmp_path / "run"))
    copier = copier_for(mlflow_database, directory)
    copier.add(write_part(directory, "s", study("acme", 1, model_path="models/acme")))
    log_all(copier)
    assert copier.status.models_pending == 0
    assert "older than MLflow 3" in str(copier.status.error)
    assert list(by_name(mlflow_database)) == ["acme"]


def test_which_models_are_logged(mlflow_database: str, tmp_path: Path) -> None:
    assert [logs_models(chosen, 101) for chosen in ("all", "auto", "none")] == [True, False, False]
    assert [logs_models(chosen, 100) for chosen in ("all", "auto", "none")] == [True, True, False]
    directory = RunDirectory(str(tmp_path / "run"))
    part = write_part(directory, "s", *(study(f"c{n}", 1, model_path="models/c") for n in range(3)), study("none", 1))
    for wanted, count in ((True, 3), (False, 0)):
        copier = copier_for(mlflow_database, directory, wanted)
        copier.add(part)
        copier.work()
        assert copier.status.models_pending == count


def test_requirements_are_pinned_and_of_the_family_only() -> None:
    boosted, linear = requirements([("xgboost", "model.ubj")]), requirements([("ridge", "model.skops")])
    assert all("==" in line for line in (*boosted, *linear))
    both = requirements([("xgboost", "1-model.ubj"), ("ridge", "2-model.skops"), ("ridge", "3-model.skops")])
    assert sorted(both) == sorted({*boosted, *linear})
    names = [{line.partition("==")[0] for line in lines} for lines in (boosted, linear)]
    assert names[0] - names[1] <= {"xgboost", "xgboost-cpu"}
    assert names[1] - names[0] == {"scikit-learn", "skops"}
    assert not {"tuning-service", "ray", "mlflow", "hpbandster"} & (names[0] | names[1])


WITHOUT_US = """
import json, sys
from pathlib import Path

import mlflow.pyfunc
import pandas as pd

sys.path[:] = [place for place in sys.path if not Path(place or ".", "tuning").exists()]
frame = pd.read_parquet(sys.argv[1])
answers = {}
for folder in sys.argv[2:]:
    model = mlflow.pyfunc.load_model(folder)
    answers[folder] = [model.predict(frame, params={"method": each}).tolist() for each in ("predict", "predict_proba")]
from tuning.models import registry
print(json.dumps({"answers": answers, "code": registry.__file__, "ray": "ray" in sys.modules}))
"""


def test_a_model_brings_the_code_that_loads_it(tmp_path: Path) -> None:
    """As `mlflow models serve` loads it, where tuning-service is not installed."""
    directory = RunDirectory(str(tmp_path / "run"))
    ours, folders = {}, []
    for name in ("logistic", "xgboost", "catboost"):
        model, digest = save_model(directory, name, "binary", name)
        target = tmp_path / name / "mlflow"
        target.parent.mkdir()
        description = describe_model(directory, f"models/{name}", digest)
        save_winner(target, Path(directory.path(f"models/{name}")), description, Model())
        ours[str(target)] = model
        folders.append(str(target))
    frame = make_frame("binary")
    frame.to_parquet(tmp_path / "rows.parquet")
    command = [sys.executable, "-P", "-c", WITHOUT_US, str(tmp_path / "rows.parquet"), *folders]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert "tuning_service.zip" in said["code"]
    assert not said["ray"]
    for folder, model in ours.items():
        labels, probabilities = said["answers"][folder]
        assert labels == model.predict(frame).tolist()
        np.testing.assert_allclose(probabilities, model.predict_proba(frame), rtol=1e-12)


def test_a_changed_model_is_refused_before_its_code_runs(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    _, digest = save_model(directory, "ridge", "regression", "ridge")
    description = describe_model(directory, "models/ridge", digest)
    save_winner(tmp_path / "mlflow", Path(directory.path("models/ridge")), description, Model())
    (described,) = (tmp_path / "mlflow").rglob("model.json")
    described.write_text(described.read_text().replace("ridge", "ridgy"))
    with pytest.raises(RunError, match=r"model\.json is damaged: its SHA-256 is not the recorded one"):
        mlflow.pyfunc.load_model(str(tmp_path / "mlflow"))


def test_a_model_takes_rows_as_they_are_before_prepare(tmp_path: Path) -> None:
    """The taxi example: of a trip that has not ended there is no dropoff, of which the target is made."""
    rng = np.random.default_rng(0)
    pickup = pd.Timestamp(2019, 3, 1) + pd.to_timedelta(rng.integers(0, 86400, 40), unit="s")
    trips = pd.DataFrame({"tpep_pickup_datetime": pickup, "trip_distance": rng.lognormal(size=40)})
    trips["tpep_dropoff_datetime"] = pickup + pd.to_timedelta(60 + 300 * trips["trip_distance"], unit="s")
    trips = trips.assign(PULocationID=7, DOLocationID=np.arange(40), passenger_count=np.resize([1, 2], 40))
    trips.to_csv(tmp_path / "trips.csv", index=False)
    runner = TuneRunner.from_yaml(
        ROOT / "examples" / "nyc_taxi.yaml", data=str(tmp_path / "trips.csv"), trials=1, search_space="ridge",
        mlflow=False, slots=1,
    )  # fmt: skip
    result = runner.run(str(tmp_path / "run"), in_process=True, progress=False)
    (record,) = result.study_records
    assert record.model_path is not None
    description = describe_model(result.directory, record.model_path, record.model_sha256)
    save_winner(tmp_path / "mlflow", Path(result.directory.path(record.model_path)), description, Model())
    theirs = mlflow.pyfunc.load_model(str(tmp_path / "mlflow"))
    new = trips.drop(columns="tpep_dropoff_datetime")
    np.testing.assert_array_equal(theirs.predict(new), result.model("7").predict(new))
    assert len(theirs.predict(theirs.input_example)) == 5
    told = theirs.predict(new, params={"interval": 0.8})
    pd.testing.assert_frame_equal(told, result.model("7").predict(new, interval=0.8))
    with pytest.raises(MlflowException, match="columns are missing: 'trip_distance'"):
        theirs.predict(new.drop(columns="trip_distance"))


def test_what_a_model_cannot_answer_is_said(tmp_path: Path) -> None:
    model, _ = save_model(RunDirectory(str(tmp_path)), "ridge", "regression", "ridge")
    frame = make_frame("regression")
    with pytest.raises(MlflowException, match="ridge model of customer 'ridge' has no probabilities"):
        Predictor(model).predict(frame, {"method": "predict_proba"})
    with pytest.raises(MlflowException, match="'score'; it must be 'predict' or 'predict_proba'"):
        Predictor(model).predict(frame, {"method": "score"})
    with pytest.raises(MlflowException, match="has no intervals"):
        Predictor(model).predict(frame, {"interval": 0.8})
