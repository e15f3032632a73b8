"""The pages and the results of a run: whole without a script, a team's own, and safe to show."""

from __future__ import annotations

import io
import json
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from builders import reason, write_customers
from pyarrow import feather
from service_app import BROWSER, ORIGIN, bearer, child_here
from starlette.testclient import TestClient

from tuning import RunResult, TuneRunner
from tuning.runs.progress import Progress
from tuning.service.children import Children
from tuning.service.database.runs import Submission
from tuning.service.database.tokens import Role
from tuning.service.service import Service
from tuning.service.states import RunState
from tuning.service.views.tables import (
    LEADERBOARD_FILE,
    STUDIES_FILE,
    SUMMARY_FILE,
    TRIALS_FILE,
    RunTables,
    order_of,
)
from tuning.service.views.write import write
from tuning.service.web.app import create_app

HOSTILE = "<script>alert(1)</script>/é\n"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("pages")
    write_customers(folder, 4)
    frame = pd.concat([pd.read_csv(file).assign(k=file.stem) for file in sorted(folder.glob("*.csv"))])
    frame.loc[frame["k"] == "c0000", "k"] = HOSTILE
    frame = pd.concat([frame, frame[frame["k"] == "c0001"][:3].assign(k="few")])
    runner = TuneRunner(
        data=frame, by="k", target="y", metric="rmse", models=["sgd"], trials=2, mlflow=False, name="week"
    )
    return runner.run(folder / "run", in_process=True, progress=False)


@pytest.fixture(scope="module")
def tables(result: RunResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its tables, which a server lets a child process write."""
    folder = tmp_path_factory.mktemp("tables")
    write(result.directory.uri, str(folder))
    return folder


@pytest.fixture
def run(service: Service, result: RunResult, tables: Path) -> str:
    """A finished run of the team `churn`."""
    submission = Submission("churn", "week", {"name": "week", "target": "y"})
    run = service.requests.submit(submission, 1.0).id
    service.runs.note(run, run_directory=result.directory.uri)
    service.runs.change(run, RunState.RUNNING, 2.0, slots=1)
    service.runs.change(run, RunState.FINISHED, 3.0)
    shutil.copytree(tables, service.work_folder(run) / "views" / "4000000")  # at its fourth second, in microseconds
    return run


def test_who_logs_in_gets_the_page_that_was_asked_for(web: TestClient, service: Service, run: str) -> None:
    for path in ("/", f"/runs/{run}", f"/runs/{run}/customer?id=c0001"):
        answer = web.get(path, headers=BROWSER)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/login")
    asked = web.get(answer.headers["location"]).text
    token = service.tokens.create("churn", Role.READ, "person", 1.0)
    assert web.post("/login", data={"token": "wrong"}, headers=ORIGIN).text.count("not valid") == 1
    (wanted,) = re.findall(r'name="next" value="([^"]*)"', asked)
    answer = web.post("/login", data={"token": token, "next": unescape(wanted)}, headers=ORIGIN)
    assert answer.headers["location"] == f"/runs/{run}/customer?id=c0001"
    elsewhere = web.post("/login", data={"token": token, "next": "//evil.example"}, headers=ORIGIN)
    assert elsewhere.headers["location"] == "/"


@pytest.mark.long
def test_a_run_is_listed_and_shown_with_its_customers(page: TestClient, run: str) -> None:
    assert f'href="/runs/{run}"' in page.get("/").text
    assert 'No run is failed. <a href="/">All runs</a>' in page.get("/?state=failed").text
    shown = page.get(f"/runs/{run}").text
    assert "<dt>customers with a model</dt><dd><b>4 of 5</b>" in shown
    assert (
        shown.index('class="tiles"') < shown.index("/pictures/") < shown.index("What to do")
        or "/pictures/" not in shown
    )
    assert shown.count('<tr class="bad">') == 1  # the customer with few rows
    assert "4 of 5 customers have a model" in shown
    assert shown.index("c0001") < shown.index("c0002")
    assert len(shown) < 300_000
    found = page.get(f"/runs/{run}?search=C0002&sort=test_score").text
    assert "c0002" in found
    assert "c0001" not in found


def test_the_list_of_runs_says_how_far_they_are_what_came_of_them_and_who_submitted(
    page: TestClient, service: Service, tmp_path: Path
) -> None:
    first, second = (service.requests.submit(Submission("churn", name, {"target": "y"}, submitted_by=by), 5.0).id
                     for name, by in (("ended", "alice"), ("works", "bob")))  # fmt: skip
    for run in (first, second):
        service.runs.change(run, RunState.RUNNING, 6.0, slots=1)
    service.runs.change(first, RunState.FINISHED, 7.0, outcome={"verdicts": {"model": 1200, "undecided": 3}})
    service.runs.note(second, run_directory=str(tmp_path))
    told = Progress("running", share=0.41, seconds_left=448.0, updated="2026-06-08T03:00:00+00:00")
    (tmp_path / "progress.json").write_text(json.dumps(told.to_dict()))
    shown = page.get("/").text
    for text in ("use 1,200 · undecided 3", "41%, 7 min left", "<td>alice</td>", "<td>bob</td>"):
        assert text in shown
    assert '<b id="left">41%, 7 min left</b>' in page.get(f"/runs/{second}").text


@pytest.mark.long
def test_ids_are_text_whatever_is_in_them(page: TestClient, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Children, "run", child_here)
    shown = page.get(f"/runs/{run}").text
    assert HOSTILE not in shown
    (address,) = re.findall(r'href="([^"]*customer\?id=%3Cscript[^"]*)"', shown)
    customer = page.get(address)
    assert customer.status_code == 200
    assert "<script>alert" not in customer.text
    assert customer.text.count("<tr") == 3  # a head and two trials
    (archive,) = re.findall(r'href="([^"]*/model\?id=%3Cscript[^"]*)"', customer.text)
    given = page.get(unescape(archive))
    assert f'filename="model-{run}-_script_alert_1___script_' in given.headers["content-disposition"]
    assert "<polyline" in customer.text


@pytest.mark.long
def test_no_page_has_a_script_or_style_of_its_own(page: TestClient, run: str) -> None:
    for path in ("/", "/login", "/schedules", f"/runs/{run}", f"/runs/{run}/customer?id=c0001"):
        answer = page.get(path)
        assert "unsafe-inline" not in answer.headers["content-security-policy"]
        assert not re.search(r"<script(?! src)|<style|\sstyle=|\son[a-z]+=", answer.text), path


def test_another_team_sees_nothing_of_it(web: TestClient, service: Service, run: str) -> None:
    bearer = {"Authorization": f"Bearer {service.tokens.create('credit', Role.ADMIN, 'x', 1.0)}"}
    assert run not in web.get("/", headers=bearer).text
    for path in (
        f"/runs/{run}",
        *(f"/api/v1/runs/{run}/{what}" for what in ("leaderboard", "customer?id=c1", "report")),
    ):
        assert web.get(path, headers=bearer).status_code == 404, path


def test_a_run_is_stopped_and_cancelled_on_its_page(page: TestClient, service: Service) -> None:
    queued = service.requests.submit(Submission("churn", "other", {"target": "y"}), 5.0).id
    assert page.post(f"/runs/{queued}/stop").status_code == 403  # without the page's Origin
    assert page.post(f"/runs/{queued}/stop", headers=ORIGIN).headers["location"] == f"/runs/{queued}"
    assert service.runs.get(queued).state is RunState.STOPPED
    page.post(f"/runs/{queued}/cancel", headers=ORIGIN)
    assert "cancelled" in page.get(f"/runs/{queued}").text


def why_few(result: RunResult) -> dict[str, object]:
    reason = result.customer("few").reason
    assert reason is not None
    return reason.to_dict()


@pytest.mark.long
def test_the_api_pages_the_leaderboard_and_gives_it_as_files(page: TestClient, run: str, result: RunResult) -> None:
    address = f"/api/v1/runs/{run}/leaderboard"
    answer = page.get(address, params={"sort": "test_score", "limit": 2, "start": 1}).json()
    assert [row["customer"] for row in answer["rows"]] == [row["customer"] for row in result.board("test_score")][1:3]
    assert (answer["found"], answer["customers"]) == (5, 5)
    told = {row["customer"]: row["reason"] for row in page.get(address).json()["rows"] if row["reason"]}
    assert told == {"few": why_few(result)}
    expected = result.leaderboard("test_score").dropna(axis="columns", how="all")
    parquet = pd.read_parquet(io.BytesIO(page.get(address, params={"sort": "test_score", "format": "parquet"}).content))
    pd.testing.assert_frame_equal(parquet.dropna(axis="columns", how="all"), expected, check_dtype=False)
    csv = pd.read_csv(io.BytesIO(page.get(address, params={"format": "csv"}).content))
    assert sorted(csv["customer"]) == sorted(expected["customer"])
    refused = page.get(address, params={"sort": "test_scor"})
    assert (refused.status_code, refused.json()["key"]) == (422, "sort")
    assert "test_score" in refused.json()["detail"]
    unknown = page.get(address, params={"status": "bad"})
    assert (unknown.status_code, unknown.json()["key"]) == (422, "status")
    assert "'quarantined'" in unknown.json()["detail"]
    assert page.get(address, params={"status": "ok"}).json()["found"] == 4


@pytest.mark.long
def test_the_api_tells_one_customer_by_any_id(page: TestClient, run: str, result: RunResult) -> None:
    answer = page.get(f"/api/v1/runs/{run}/customer", params={"id": HOSTILE}).json()
    assert answer["row"]["customer"] == HOSTILE
    assert [trial["trial"] for trial in answer["trials"]] == [0, 1]
    found = page.get(f"/api/v1/runs/{run}/customer", params={"id": "few"}).json()
    assert found["row"]["reason"] == found["studies"][0]["reason"] == why_few(result)
    assert page.get(f"/api/v1/runs/{run}/customer", params={"id": "nobody"}).status_code == 404


def test_a_report_runs_its_own_scripts_alone_and_without_the_sessions_origin(page: TestClient, run: str) -> None:
    answer = page.get(f"/api/v1/runs/{run}/report")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts; default-src 'none'; img-src data:;")
    assert "connect-src" not in policy
    (own,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', answer.text)
    assert re.fullmatch(r"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-[^ ]+'", own)


@pytest.mark.long
def test_a_run_that_has_recorded_nothing_says_so(page: TestClient, service: Service, tmp_path: Path) -> None:
    queued = service.requests.submit(Submission("churn", "other", {"target": "y"}), 5.0).id
    assert "Nothing is recorded yet." in page.get(f"/runs/{queued}").text
    service.runs.change(queued, RunState.RUNNING, 6.0, slots=1)
    assert '<p class="quiet">Nothing is recorded yet.</p>' in page.get(f"/runs/{queued}").text
    refused = page.get(f"/api/v1/runs/{queued}/leaderboard")
    assert refused.status_code == 404
    assert str(tmp_path) not in refused.text  # the server's own places are nobody's matter
    assert page.get(f"/api/v1/runs/{queued}/report").status_code == 404


def test_a_run_leads_to_its_experiment_where_mlflow_has_a_server(page: TestClient, service: Service, run: str) -> None:
    assert ">MLflow<" not in page.get(f"/runs/{run}").text
    settings = service.settings.model_copy(update={"mlflow": "http://user:secret@mlflow.example:5000/"})
    with_server = TestClient(create_app(replace(service, settings=settings)), headers=bearer(service))
    shown = with_server.get(f"/runs/{run}").text
    assert "mlflow.example:5000/#/experiments?experimentSearchFilter=churn%2Fweek" in shown
    assert "secret" not in shown


CUSTOMERS = 50_000
LONG = "<é>" * 90


def large(small: Path, folder: Path) -> None:
    """The tables of 50,000 customers with long ids and reasons; the first has 2,000 trials of 1,000 steps."""
    board, trials = (feather.read_table(small / name) for name in (LEADERBOARD_FILE, TRIALS_FILE))
    one = board.filter(pc.equal(board["customer"], "c0001"))
    ids = pa.array([f"{number:05} {LONG}" for number in range(CUSTOMERS)])
    rows = one.take(pa.array(np.zeros(CUSTOMERS, dtype="int64")))
    scores = pa.array(np.random.default_rng(0).random(CUSTOMERS))
    trial = trials.slice(0, 1).set_column(trials.column_names.index("customer"), "customer", ids[:1])
    steps = trial["steps"].combine_chunks()
    step = steps.flatten().take(pa.array([0] * 1000))
    trial = trial.set_column(
        trials.column_names.index("steps"), trials.schema.field("steps"), pa.ListArray.from_arrays([0, 1000], step)
    )
    for name, values in {
        "customer": ids, "reason": pa.array([reason(LONG * 9).to_row()] * CUSTOMERS), "cv_score": scores,
        order_of("cv_score"): pa.array(np.argsort(-scores.to_numpy())),
    }.items():  # fmt: skip
        rows = rows.set_column(rows.column_names.index(name), name, values.cast(rows.schema.field(name).type))
    written = {
        LEADERBOARD_FILE: rows,
        TRIALS_FILE: pa.concat_tables([trial] * 2000),
        STUDIES_FILE: feather.read_table(small / STUDIES_FILE).slice(0, 0),
    }
    for name, table in written.items():
        feather.write_feather(table, folder / name, compression="uncompressed")
    summary = json.loads((small / SUMMARY_FILE).read_text())
    group = {"message": LONG * 9, "count": 3, "examples": [LONG] * 3, "advice": "Bring more rows."}
    (folder / SUMMARY_FILE).write_text(json.dumps({**summary, "failures": [group] * 5000}))


@pytest.mark.long
@pytest.mark.slow
def test_50_000_customers_are_paged_sorted_and_searched_in_pages_below_300_kb(
    page: TestClient, service: Service, run: str, tables: Path
) -> None:
    folder = service.work_folder(run) / "views" / "5000000"
    folder.mkdir()
    large(tables, folder)
    address, sizes, seen = f"/runs/{run}?sort=cv_score", [], list[str]()
    for _ in range(3):
        answer = page.get(address)
        sizes.append(len(answer.content))
        seen += re.findall(r'<th scope="row"><a href="[^"]*" title="[^"]*">(\d{5})', answer.text)
        (address,) = [unescape(href) for href in re.findall(r'href="([^"]*)">Next page', answer.text)]
    scores = RunTables(folder).page(sort="cv_score", rows=len(seen)).rows
    assert seen == [str(row["customer"])[:5] for row in scores]  # each once, in order, whatever fits a page
    assert len(seen) > 20
    found = page.get(f"/runs/{run}?search=0499&sort=cv_score")
    assert " of 15 customers found of 50,000" in found.text
    customer = page.get(f"/runs/{run}/customer", params={"id": f"00000 {LONG}"})
    assert "of 2,000 trials" in customer.text
    assert max(*sizes, len(found.content), len(customer.content)) < 300_000
