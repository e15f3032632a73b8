"""No answer and no page names a folder of the server: files have the names of definitions, runs their ids."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from builders import write_customers
from chaos import wait_for
from httpx import Response
from service_app import BROWSER, ORIGIN, child_here, routes_of, write_here
from starlette.testclient import TestClient

from tuning import TuneRunner
from tuning.basics.wording import command
from tuning.errors import TuningError
from tuning.service.children import roots_variable, run_variable
from tuning.service.names import Names
from tuning.service.service import Service
from tuning.service.states import RunState
from tuning.service.supervisor.drivers import Gone
from tuning.service.supervisor.endings import sequel
from tuning.service.supervisor.outages import Outages

COMMANDS = ("delete", "explain", "leaderboard", "predict", "report", "resume", "show")
RIDGE = {"target": "y", "metric": "r2", "search_space": "ridge", "trials": 2, "split": {"folds": 2}}
#: What teams send, by the state in which its run ends.
SENT: dict[str, tuple[dict[str, object], RunState]] = {
    "shops": ({"data": "shops/*.csv", "schedule": "0 3 * * 1"}, RunState.FINISHED),
    "table": ({"data": "table.csv", "by": "k", "report": False}, RunState.FINISHED),
    "listed": ({"manifest": "list.csv", "report": False}, RunState.FINISHED),
    "nothing": ({"data": "none/*.csv"}, RunState.FAILED),
    "no target": ({"data": "shops", "target": "z"}, RunState.FAILED),
}


def write_data(folder: Path, outside: Path) -> None:
    """Customers with a model, and all kinds of those who have none."""
    write_customers(folder / "shops", 2, rows=30)
    (folder / "shops" / "broken.csv").write_bytes(b"\xff\xfe\x00bad")
    (folder / "shops" / "few.csv").write_text("a,b,c,y\n1,2,3,4\n")
    (folder / "shops" / "other.csv").write_text("a,b\n1,2\n" * 20)
    outside.write_bytes((folder / "shops" / "c0000.csv").read_bytes())
    (folder / "shops" / "link.csv").symlink_to(outside)
    (folder / "table.csv").write_text("k,a,y\n" + "".join(f"{row % 2},{row},{row * 2}\n" for row in range(60)))
    (folder / "list.csv").write_text("customer,path\na,shops/c0000.csv\ngone,shops/gone.csv\n")


@pytest.fixture
def runs(page: TestClient, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs that were sent, each worked through in this process with the roots of its team."""
    for module in ("extracts", "plans"):
        monkeypatch.setattr(f"tuning.service.{module}.run_child", child_here)
    monkeypatch.setattr("tuning.service.service.write_in_child", write_here)
    write_data(tmp_path / "data", tmp_path / "outside.csv")
    made = []
    for name, (own, state) in SENT.items():
        answer = page.post("/api/v1/runs", json={**RIDGE, "name": name, **own}, headers=ORIGIN)
        assert answer.status_code == 202, answer.text
        run = service.runs.get(answer.json()["id"])
        for variable, value in {**roots_variable(service.settings, "churn"), **run_variable(run.id)}.items():
            monkeypatch.setenv(variable, value)
        code, reason = 0, ""
        try:
            TuneRunner(dict(run.definition)).run(run.run_directory, in_process=True, progress=False)
        except TuningError as error:
            code, reason = 2, str(error)
        told = {"reason": f"{reason} See {service.settings.work / run.id}/log.txt of {run.run_directory}"}
        run = service.runs.change(run.id, RunState.RUNNING, 2.0, slots=1)
        after = sequel(run, Gone(code, told=told), service.settings, 3.0, Outages(lambda: 0.0))
        assert after.to is state
        service.runs.change(run.id, after.to, 3.0, after.reason, **after.values)
        made.append(run.id)
    return made


def addresses(page: TestClient, service: Service, runs: list[str]) -> Iterator[tuple[str, str]]:
    """Template and address of all that can be asked for."""
    own = {path for method, path in routes_of(page.app) if method == "GET"}
    (schedule,) = service.schedules.all("churn")
    plans = []
    for changed in ({}, {"data": "none/*.csv"}, {"target": "z"}):
        asked = page.post("/api/v1/plans", json={**RIDGE, "data": "shops", **changed}, headers=ORIGIN).json()
        wait_for(lambda asked=asked: service.plans.get(asked["id"], "churn").at and _made(page, asked), what="a plan")
        plans.append(asked["id"])
    for path in sorted(own):
        if "{run}" in path:
            for run in runs:
                address = path.replace("{run}", run)
                if path.endswith("/leaderboard"):
                    yield from ((path, f"{address}?format={form}") for form in ("json", "csv", "parquet"))
                elif path.endswith("/{name}"):
                    yield path, address.replace("{name}", "picture-0.svg")
                elif path.endswith(("/customer", "/model", "/report")):
                    customers = page.get(f"/api/v1/runs/{run}/leaderboard").json().get("rows", [])
                    known = [row["customer"] for row in customers if run == runs[0] or row["reason"]]
                    yield from ((path, f"{address}?id={customer}") for customer in known)
                    yield path, address
                else:
                    yield path, address
        elif "{plan}" in path:
            yield from ((path, path.replace("{plan}", plan)) for plan in plans)
        else:
            yield path, path.replace("{schedule}", schedule.id).replace("{name}", "service.css")


def _made(page: TestClient, asked: dict[str, dict[str, str]]) -> bool:
    return page.get(asked["links"]["self"]).json()["state"] in ("planned", "refused")


def content(answer: Response) -> str:
    """All that is in an answer, as text."""
    if "parquet" in answer.headers.get("content-type", ""):
        return str(pq.read_table(io.BytesIO(answer.content)).to_pylist())
    if answer.headers.get("content-type") == "application/zip":
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            return "".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())
    return unescape(answer.text)


@pytest.mark.long
def test_nothing_that_is_asked_for_names_a_folder_of_the_server(
    page: TestClient, service: Service, runs: list[str], tmp_path: Path
) -> None:
    seen = dict[str, str]()
    for template, address in addresses(page, service, runs):
        headers = {} if template.startswith("/api/") else BROWSER
        seen[f"{template} {address}"] = content(page.get(address, headers=headers))
    rows = {"rows": [{"a": 1.0, "b": 2.0, "c": 3.0}]}
    for customer in ("c0000", "link", "nobody"):
        asked = f"/api/v1/runs/{runs[0]}/predictions?id={customer}"
        seen[asked] = page.post(asked, json=rows, headers=ORIGIN).text
    for name, text in seen.items():
        found = re.search(f".{{0,99}}{re.escape(str(tmp_path))}.{{0,99}}", text)
        assert found is None, f"{name}: {found and found[0]}"
        typed = re.search(rf"tuning (?:{'|'.join(COMMANDS)}) (?:run )?(?:{'|'.join(runs)})[^`]*", text)
        assert typed is None, f"{name}: {typed and typed[0]}"
    assert {name.partition(" ")[0] for name in seen} >= {
        path for method, path in routes_of(page.app) if method == "GET"
    }
    whole = "\n".join(seen.values())
    assert "table.csv" in whole
    assert f"See log.txt of run {runs[-1]}" in whole or f"See {runs[-1]}/log.txt of run {runs[-1]}" in whole


def test_names_below_a_folder_and_others_that_only_look_so() -> None:
    names = Names(frozenset({"/srv/data", "/srv/runs/churn", "s3://bucket/runs/churn", '/srv/"été" & co'}))
    for text, shown in {
        "no file matches '/srv/data/none*.csv'.": "no file matches 'none*.csv'.",
        "below /srv/data.": "below data.",
        "(/srv/data/, /srv/data)": "(data, data)",
        "/srv/data.csv and /srv/database/x, /mnt/srv/data/x": "/srv/data.csv and /srv/database/x, /mnt/srv/data/x",
        "/srv/runs/churn/5f0c is being run": "5f0c is being run",
        "s3://bucket/runs/churn/5f0c": "5f0c",
        "/srv/runs/credit/5f0c": "/srv/runs/credit/5f0c",
        '/srv/"été" & co/a.csv': "a.csv",
        json.dumps('/srv/"été" & co/a.csv'): '"a.csv"',
        "/srv/&quot;été&quot; &amp; co/a.csv": "a.csv",
    }.items():
        assert names.text(text) == shown
    typed = {"data": ["/srv/data", {"path": "/srv/data/a.csv"}], "trials": 3, "by": None}
    assert names.document(typed) == {"data": [".", {"path": "a.csv"}], "trials": 3, "by": None}


def test_a_command_is_a_request_where_no_reader_has_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = command("show", "/srv/run", "--customer", "a b")
    assert typed == "tuning show /srv/run --customer 'a b'"
    monkeypatch.setenv(*next(iter(run_variable("5f0c").items())))
    assert command("show", "/srv/run", "--customer", "a b") == "GET /api/v1/runs/5f0c/customer?id=a+b"
    assert command("resume", "/srv/run") == "POST /api/v1/runs/5f0c/resume"
    assert command("explain", "/srv/run") == "tuning explain /srv/run"
