"""Models over HTTP: their files, what they say of new rows, and the report of one customer; each made by a child."""

from __future__ import annotations

import hashlib
import io
import json
import threading
import zipfile
from concurrent.futures import Future
from pathlib import Path

import pandas as pd
import pytest
from builders import write_customers
from service_app import bearer, child_here, finished, submitted
from starlette.testclient import TestClient

from tuning import RunResult, TuneRunner
from tuning.errors import QuotaError
from tuning.models.customer_model import load_model
from tuning.service.children import Children
from tuning.service.extract_child import DIGESTS
from tuning.service.extracts import KIND
from tuning.service.service import Service
from tuning.service.web.messages import PredictionsMessage
from tuning.storage.run_directory import RunDirectory

HOSTILE = "<b>a/b</b>/../é\n"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("models")
    write_customers(folder, 2)
    frame = pd.concat([pd.read_csv(file).assign(k=file.stem) for file in sorted(folder.glob("*.csv"))])
    frame.loc[frame["k"] == "c0000", "k"] = HOSTILE
    return pd.concat([frame, frame[:1].assign(k="tiny")])


@pytest.fixture(scope="module")
def result(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    runner = TuneRunner(
        data=rows, by="k", target="y", metric="rmse", models=["ridge"], trials=2, mlflow=False, report=False
    )
    return runner.run(tmp_path_factory.mktemp("models") / "run", in_process=True, progress=False)


@pytest.fixture
def api(web: TestClient, service: Service, result: RunResult) -> TestClient:
    """A client of the team, at a run that has ended."""
    web.headers.update(bearer(service))
    web.base_url = web.base_url.join(f"/api/v1/runs/{finished(service, result.directory.uri)}/")
    return web


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No child is started for what the first test and those of `tests/service` ask real ones for."""
    monkeypatch.setattr(Children, "run", child_here)


@pytest.mark.long
def test_a_model_comes_with_digests_and_can_be_loaded_elsewhere(
    api: TestClient, result: RunResult, rows: pd.DataFrame, tmp_path: Path
) -> None:
    answer = api.get("model", params={"id": HOSTILE})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    archive.extractall(tmp_path / "model")
    digests = dict(line.split("  ")[::-1] for line in archive.read(DIGESTS).decode().splitlines())
    assert {*digests, DIGESTS} == set(archive.namelist())
    for name, digest in digests.items():
        assert hashlib.sha256(archive.read(name)).hexdigest() == digest
    (study,) = (each for each in result.study_records if each.customer == HOSTILE)
    assert digests["model.json"] == study.model_sha256
    model = load_model(RunDirectory(tmp_path), "model", study.model_sha256)
    assert list(model.predict(rows[:5])) == list(result.model(HOSTILE).predict(rows[:5]))


@pytest.mark.usefixtures("here")
def test_rows_in_any_form_are_predicted_as_the_model_does(
    api: TestClient, result: RunResult, rows: pd.DataFrame
) -> None:
    asked = pd.concat([rows[:2], rows[-3:]]).drop(columns="y").assign(note="x")
    asked.loc[asked["k"] == "tiny", "note"] = None
    sent = asked.astype(object).where(asked.notna(), None).to_dict("records")
    answer = api.post("predictions", json={"rows": sent})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [{name: row[name] for name in sent[0]} for row in found["rows"]] == sent
    expected = [*result.model(HOSTILE).predict(asked[:2]), *result.model("c0001").predict(asked[2:4]), None]
    assert [row[found["column"]] for row in found["rows"]] == [pytest.approx(each) for each in expected]
    assert (list(found["without"]), found["held_back"], found["unseen"]) == (["tiny"], 0, {})
    PredictionsMessage.model_validate(found, extra="forbid")  # it is streamed, so that nothing else checks it
    headers = {"Content-Type": "text/csv; charset=utf-8"}
    asked["note"] = "=1+1"
    for formulas, note in ((None, "=1+1"), ("guard", "'=1+1")):
        params = {"id": "c0001", "interval": 0.8, **({} if formulas is None else {"formulas": formulas})}
        as_csv = api.post("predictions", content=asked[:2].to_csv(index=False), headers=headers, params=params)
        assert as_csv.headers["content-type"].startswith("text/csv")
        back = pd.read_csv(io.StringIO(as_csv.text))
        told = result.model("c0001").predict(asked[:2], interval=0.8)
        for name in ("prediction", "prediction_low", "prediction_high"):
            assert list(back[name]) == pytest.approx(list(told[name]))
        assert set(back["note"]) == {note}
    for wrong in ("80", "0", "wide"):
        answer = api.post("predictions", json={"rows": sent}, params={"interval": wrong})
        assert (answer.status_code, "interval" in answer.text) == (422, True)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"rows": [{"a": 1}]}', "'k'"),
        ('{"rows": [{"a": [1]}]}', "'a' of row 1: a cell is a finite number"),
        ('{"rows": []}', "a list of one or more rows"),
        ("[1]", "a list of one or more rows"),
        ("{", "not JSON"),
        ('{"rows": [{"a": NaN}]}', "finite"),
        ('{"rows": [{}]}', "there are none"),
        ('{"rows": [{"a": "\\ud800"}]}', "not JSON"),
    ],
)
def test_what_is_wrong_with_rows_is_said_as_the_command_says_it(api: TestClient, body: str, said: str) -> None:
    answer = api.post("predictions", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert said in answer.json()["detail"]


@pytest.mark.usefixtures("here")
def test_more_rows_than_are_taken_are_refused_with_the_figures(api: TestClient) -> None:
    headers = {"Content-Type": "text/csv"}
    answer = api.post("predictions", content="k,a\n" + "c0001,1\n" * 10_001, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("rows: 10,001 were sent; at most 10,000")
    assert api.post("predictions", content="{}", headers={"Content-Type": "text/plain"}).status_code == 415


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/csv", "k" + ",a" * 10_000 + "\nc0001\n"),
        ("application/json", json.dumps({"rows": [{f"c{n}": 1} for n in range(4_000)]})),
    ],
    ids=["columns", "cells"],
)
def test_rows_that_are_too_wide_are_refused_before_they_are_read(api: TestClient, kind: str, body: str) -> None:
    answer = api.post("predictions", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert "at most 10,000 columns and 10,000,000 cells are taken at once" in answer.json()["detail"]


@pytest.mark.usefixtures("here")
def test_somebody_unknown_or_without_a_model_is_told_without_the_servers_places(
    api: TestClient, service: Service, result: RunResult
) -> None:
    for path, customer, status in (("model", "tiny", 409), ("report", "c0002", 404)):
        answer = api.get(path, params={"id": customer})
        assert answer.status_code == status, answer.text
        assert customer in answer.json()["detail"]
        assert str(service.settings.work) not in answer.text
        assert result.directory.uri not in answer.text
    assert api.get("model").json()["detail"].startswith("which of the 3 customers?")
    waiting = api.get(f"http://testserver/api/v1/runs/{submitted(service)}/model")
    assert waiting.status_code == 409
    assert "has recorded nothing yet" in waiting.json()["detail"]


@pytest.mark.usefixtures("here")
def test_a_customers_report_is_a_page_without_the_servers_places(
    api: TestClient, service: Service, result: RunResult
) -> None:
    first = api.get("report", params={"id": HOSTILE})
    assert first.status_code == 200, first.text
    assert "What was tried" in first.text
    assert "<b>a/b" not in first.text
    assert result.directory.uri not in first.text  # where that is, is the server's own matter
    assert "default-src 'none'" in first.headers["content-security-policy"]
    assert list(service.settings.work.glob("*/*")) == []


def test_one_team_does_not_take_all_children(
    service: Service, result: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = service.runs.get(finished(service, result.directory.uri))
    other = service.runs.get(finished(service, result.directory.uri, "credit"))
    go_on = threading.Event()

    def waiting(*_: object, folder: Path, **__: object) -> None:
        go_on.wait(60)
        (folder / "answer").touch()

    monkeypatch.setattr(Children, "run", waiting)
    extracts = service.extracts
    begun: list[Future] = [extracts.model(run, None) for _ in range(KIND.most_open)]
    with pytest.raises(QuotaError, match="as many as may be at once"):
        extracts.model(run, None)
    begun.append(extracts.model(other, None))
    go_on.set()
    for each in begun:
        each.result(60)
    extracts.model(run, None).result(60)
    service.children.close()
