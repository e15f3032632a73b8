"""What a browser shows when there is no page: the sentence, in the style of the pages, with a way on."""

from __future__ import annotations

import pytest
from service_app import BROWSER, ORIGIN, submitted
from starlette.testclient import TestClient

from tuning.service.database.runs import Runs
from tuning.service.service import Service
from tuning.service.web.auth import LASTS_S
from tuning.service.web.problems import MEDIA_TYPE


def shown(web: TestClient, path: str, status: int) -> str:
    """The page, which a program gets as a problem in JSON."""
    answer = web.get(path, headers=BROWSER)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert "<h1>" in answer.text
    assert 'href="/static/service.css"' in answer.text
    assert answer.headers["x-request-id"] in answer.text
    program = web.get(path)
    assert (program.status_code, program.headers["content-type"]) == (status, MEDIA_TYPE)
    return answer.text


def test_what_is_not_there_and_what_another_team_has_look_alike(page: TestClient, service: Service) -> None:
    theirs = submitted(service, "credit")
    pages = [shown(page, path, 404) for path in ("/nothing", "/runs/nothing", f"/runs/{theirs}", "/plans/nothing")]
    assert all('href="/"' in each for each in pages)
    assert "credit" not in "".join(pages)


def test_what_the_role_does_not_allow_is_said(page: TestClient, service: Service) -> None:
    run = submitted(service)
    answer = page.post(f"/runs/{run}/delete", headers={**ORIGIN, **BROWSER})
    assert answer.status_code == 403
    assert "<code>tuning token create</code>" in answer.text
    assert f'href="/runs/{run}"' in answer.text


def test_a_mistake_of_the_server_shows_no_traceback(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("SELECT secret")

    monkeypatch.setattr(Runs, "page", broken)
    text = shown(page, "/", 500)
    assert "secret" not in text
    assert "Traceback" not in text


def test_a_login_that_has_ended_is_said_and_nothing_is_done(page: TestClient, service: Service) -> None:
    run = submitted(service)
    object.__setattr__(service, "clock", lambda: LASTS_S * 1e6)
    answer = page.get(f"/runs/{run}?search=a", headers=BROWSER)
    assert answer.headers["location"] == f"/login?next=%2Fruns%2F{run}%3Fsearch%3Da"
    assert "Your login has ended" in page.get(answer.headers["location"]).text
    sent = page.post(f"/runs/{run}/stop", headers={**ORIGIN, **BROWSER})
    assert sent.status_code == 401
    assert "reload this page" in sent.text
    assert service.runs.get(run).state == "queued"
