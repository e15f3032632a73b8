"""What a team submits again and again is seen and ended on its page."""

from __future__ import annotations

import re
from html import unescape

from service_app import ORIGIN, bearer, scheduled, submitted
from starlette.testclient import TestClient

from tuning.service.database.tokens import Role
from tuning.service.service import Service


def test_who_has_submitted_a_run_is_told_by_the_name_of_the_token(page: TestClient, service: Service) -> None:
    alice = bearer(service, name="alice")
    asked = {"data": "a.csv", "target": "y", "name": "shops", "schedule": "0 3 * * 1"}
    made = page.post("/api/v1/runs", json=asked, headers=alice).json()
    typed = {"definition": "data: a.csv\ntarget: y\nname: forms\n", "action": "submit"}
    page.post("/runs/new", data=typed, headers=ORIGIN)
    service.schedules.submit_due(service.requests.submit, service.clock() + 8 * 86_400)  # the first one still waits
    service.requests.cancel(made["id"], "churn", service.clock())
    service.schedules.submit_due(service.requests.submit, service.clock() + 16 * 86_400)
    found = page.get("/api/v1/runs", headers=alice).json()["runs"]
    assert {(run["name"], run["submitted_by"]) for run in found} == {
        ("shops", "alice"), ("shops", None), ("forms", "person"),
    }  # fmt: skip
    shown = {run["submitted_by"]: page.get(f"/runs/{run['id']}").text for run in found}
    assert '<dd>alice, and again by a <a href="/schedules">schedule</a></dd>' in shown["alice"]
    assert '<dd>a <a href="/schedules">schedule</a></dd>' in shown[None]
    assert "<dt>Submitted by</dt><dd>person</dd>" in shown["person"]


def test_a_schedule_is_shown_with_its_times_and_ended_by_who_may(page: TestClient, service: Service) -> None:
    assert "Your team has no schedule." in page.get("/schedules").text
    schedule, run = scheduled(service), submitted(service)
    scheduled(service, "credit")
    service.runs.note(run, schedule=schedule)
    shown = unescape(page.get("/schedules").text)
    assert re.findall(r'<a href="(/\?name=[^"]+)" title="(\w+)">(\w+)</a>', shown) == [("/?name=week", "week", "week")]
    assert "<code>0 3 * * 1</code> in UTC" in shown
    assert 'a <a href="/schedules">schedule</a>' in page.get(f"/runs/{run}").text
    reader = bearer(service, role=Role.READ, name="reader")
    assert "<form" not in TestClient(page.app).get("/schedules", headers=reader).text.split("<main")[1]
    ended = page.post(f"/schedules/{schedule}/end", headers=ORIGIN)
    assert (ended.status_code, ended.headers["location"]) == (303, "/schedules")
    assert "Your team has no schedule." in page.get("/schedules").text
    assert [each.team for each in service.schedules.all("credit")] == ["credit"]
