"""A definition that is typed on the page: planned, submitted, or given back with what is wrong; and a run's forms."""

from __future__ import annotations

import os
import re
from html import unescape

import pytest
from service_app import BROWSER, ORIGIN, planned, submitted
from starlette.testclient import TestClient

from tuning.service.database.tokens import Role
from tuning.service.service import Service
from tuning.service.states import RunState

TYPED = "# of the shops\nname: week\ndata: rows.csv\ntarget: y\ntrials: 3\n"
RESULT = {
    "name": "week", "customers": 1200, "studies": 1200, "trials": 24000, "task": "binary", "positive": "yes",
    "metric": "rmse", "mode": "min", "algorithm": "optuna", "scheduler": "asha", "portfolio": 4,
    "placement": "packed", "slots": 4, "batches": 16, "helpers": 0,
    "fits": 240,
    "notes": [{"text": "`metric` was chosen: <rmse>"}],
}  # fmt: skip


def typed_in(text: str) -> str:
    """What a page's form holds."""
    return unescape(re.findall(r"<textarea[^>]*>\n?(.*?)</textarea>", text, re.DOTALL)[0])


def key_in(text: str) -> str:
    return str(re.findall(r'name="key" value="(\w+)"', text)[0])


def test_the_form_shows_what_the_team_may_name_and_an_example(page: TestClient, service: Service) -> None:
    root = service.settings.data[0]
    for name in ("churn.csv", ".hidden"):
        with open(f"{root}/{name}", "w") as file:
            file.write("a,y\n1,2\n")
    shown = page.get("/runs/new").text
    assert "<code>churn.csv</code>" in shown
    assert ".hidden" not in shown
    assert root not in shown  # a name, and no path of the server's
    assert "data: churn.csv\nby: region\ntarget: churned" in shown
    os.remove(f"{root}/churn.csv")
    os.mkdir(f"{root}/shops")
    assert "data: shops/*.csv\ntarget: churned" in page.get("/runs/new").text  # what is there


def test_a_definition_is_submitted_once_however_often_the_button_is_pressed(page: TestClient, service: Service) -> None:
    sent = {"definition": TYPED.replace("\n", "\r\n"), "action": "submit", "key": key_in(page.get("/runs/new").text)}
    first, again = (page.post("/runs/new", data=sent, headers=ORIGIN) for _ in range(2))
    assert first.status_code == 303
    assert again.headers["location"] == first.headers["location"]
    (run,) = service.runs.page("churn")
    assert first.headers["location"] == f"/runs/{run.id}"
    assert (run.name, run.definition["trials"]) == ("week", 3)
    changed = {**sent, "definition": TYPED.replace("3", "4")}  # as somebody who went back does
    assert page.post("/runs/new", data=changed, headers=ORIGIN).headers["location"] != first.headers["location"]


@pytest.mark.parametrize("action", ["plan", "submit"])
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "The definition holds no mapping"),
        ("data: [", "the definition, line 2"),
        ("# mine\ndata: rows.csv\ntargte: y\n", "targte"),
        ("data: ../rows.csv\ntarget: y\n", ".."),
        ("data: rows.csv\ntarget: y\nprepare: a.py:f\n", "prepare"),
        ("data: rows.csv\ntarget: </textarea><script>alert(1)</script>\ntrials: 0\n", "trials"),
    ],
)
def test_a_wrong_definition_comes_back_with_the_sentence_and_the_text(
    page: TestClient, service: Service, action: str, typed: str, said: str
) -> None:
    answer = page.post("/runs/new", data={"definition": typed, "action": action}, headers=ORIGIN)
    assert answer.status_code == 422
    (sentence,) = re.findall(r'role="alert">(.*?)</p>', answer.text, re.DOTALL)
    assert said in sentence
    assert typed_in(answer.text) == typed
    assert "<script>alert" not in answer.text
    assert service.runs.page("churn") == []


def test_another_sites_page_and_a_reader_submit_nothing(web: TestClient, page: TestClient, service: Service) -> None:
    sent = {"definition": TYPED, "action": "submit"}
    assert page.post("/runs/new", data=sent, headers={"Origin": "http://evil.example"}).status_code == 403
    reader = {"Authorization": f"Bearer {service.tokens.create('churn', Role.READ, 'reader', 1.0)}"}
    web.cookies.clear()
    assert web.post("/runs/new", data=sent, headers=reader).status_code == 403
    assert "/runs/new" not in web.get("/", headers=reader).text
    assert service.runs.page("churn") == []


def test_a_plan_is_readable_and_keeps_what_was_typed(page: TestClient, service: Service) -> None:
    plan = planned(service, state="planned", result=RESULT, problem=None, typed=TYPED)
    shown = page.get(f"/plans/{plan}").text
    for text in ("1,200", "24,000", "rmse, smaller is better", "positive class", "at most 240"):
        assert text in unescape(shown)
    assert "<li><code>metric</code> was chosen: &lt;rmse&gt;</li>" in shown
    assert "neg_root" not in shown
    assert typed_in(shown) == TYPED
    assert "noscript" not in shown  # nothing to wait for


def test_a_plan_that_is_not_made_yet_is_looked_at_again_and_a_refused_one_says_why(
    page: TestClient, service: Service
) -> None:
    waits = page.get(f"/plans/{planned(service, state='planning', problem=None)}").text
    assert '<noscript><meta http-equiv="refresh"' in waits
    assert 'data-live="1"' in waits
    refused = page.get(f"/plans/{planned(service, problem='target: <y> is missing', definition={'target': 'z'})}").text
    assert "target: &lt;y&gt; is missing" in refused
    assert typed_in(refused) == "target: z\n"  # of a program's plan, its definition
    assert "data-live" not in refused


@pytest.mark.long
def test_a_page_loads_again_only_for_what_it_does_not_show_yet(page: TestClient, service: Service) -> None:
    """The stream of events begins with the first one each time."""
    run = submitted(service)
    service.runs.change(run, RunState.RUNNING, 2.0, slots=1)
    events = service.runs.events(run)
    assert f'data-seen="{events[-1].id}"' in page.get(f"/runs/{run}").text


def test_a_run_is_resumed_with_more_trials_and_deleted_by_who_may(
    web: TestClient, page: TestClient, service: Service
) -> None:
    run = submitted(service)
    assert "/resume" not in page.get(f"/runs/{run}").text  # it waits
    page.post(f"/runs/{run}/stop", headers=ORIGIN)
    shown = page.get(f"/runs/{run}").text
    assert f'action="/runs/{run}/resume"' in shown
    assert "/delete" not in shown
    assert page.post(f"/runs/{run}/delete", headers=ORIGIN).status_code == 403
    assert page.post(f"/runs/{run}/resume", data={"trials": "0"}, headers=ORIGIN).status_code == 422
    resumed = page.post(f"/runs/{run}/resume", data={"trials": "50", "slots": ""}, headers=ORIGIN)
    assert resumed.headers["location"] == f"/runs/{run}"
    found = service.runs.get(run)
    assert (found.state, found.definition["trials"], found.slots_asked) == (RunState.QUEUED, 50, None)
    again = page.post(f"/runs/{run}/resume", headers={**ORIGIN, **BROWSER})
    assert again.status_code == 409
    assert f'href="/runs/{run}"' in again.text  # a way back
    page.post(f"/runs/{run}/cancel", headers=ORIGIN)
    admin = service.tokens.create("churn", Role.ADMIN, "admin", 1.0)
    page.post("/login", data={"token": admin}, headers=ORIGIN)
    assert f'action="/runs/{run}/delete"' in page.get(f"/runs/{run}").text
    assert page.post(f"/runs/{run}/delete", headers=ORIGIN).headers["location"] == "/"
    assert page.get(f"/runs/{run}").status_code == 404
