"""Every route, asked with every kind of token; the routes are those that the application has."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest
from service_app import bearer, only_tables_here, planned, routes_of, scheduled, submitted
from starlette.testclient import TestClient

from tuning.service.children import Children
from tuning.service.database.tokens import Role
from tuning.service.service import Service
from tuning.service.web.app import create_app
from tuning.service.web.auth import COOKIE, OPEN, role_of
from tuning.service.web.problems import MEDIA_TYPE

REFUSED = (401, 403)


def filled(service: Service, path: str, team: str) -> str:
    """A path with the ids of a team's things in it."""
    for part, make in {"{run}": submitted, "{schedule}": scheduled, "{plan}": planned}.items():
        if part in path:
            path = path.replace(part, make(service, team))
    return path


def tokens_of(service: Service) -> dict[str, dict[str, str]]:
    now = service.clock()
    ended = service.tokens.create("churn", Role.ADMIN, "ended", now - 10, now - 1)
    revoked = bearer(service, name="revoked")
    service.tokens.revoke("churn", "revoked", now)
    return {
        "no token": {},
        "empty": {"Authorization": "Bearer "},
        "no bearer": {"Authorization": "Basic dTpw"},
        "malformed": {"Authorization": "Bearer ' OR 1=1 --"},
        "too long": {"Authorization": "Bearer " + "a" * 10_000},
        "unknown": {"Authorization": f"Bearer {secrets.token_urlsafe(32)}"},
        "ended": {"Authorization": f"Bearer {ended}"},
        "revoked": revoked,
        "read": bearer(service, role=Role.READ, name="read"),
        "submit": bearer(service, role=Role.SUBMIT, name="submit"),
        "admin": bearer(service, name="admin"),
        "other team": bearer(service, "credit"),
    }


@pytest.mark.long
def test_every_route_asked_with_every_token_lets_through_whom_it_should(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = TestClient(create_app(service), raise_server_exceptions=False)
    monkeypatch.setattr(Children, "run", only_tables_here)  # a process would take seconds
    routes, wrong, cells = routes_of(web.app), [], 0
    tokens = tokens_of(service)
    for method, path in routes:
        needed = role_of(method, path)
        for kind, headers in tokens.items():
            answer = web.request(method, filled(service, path, "churn"), headers=headers)
            cells += 1
            if needed is None:
                right = answer.status_code not in REFUSED or path == "/login"
            elif kind in ("read", "submit", "admin"):
                right = (answer.status_code not in REFUSED) == Role(kind).includes(needed)
            elif kind == "other team":
                right = answer.status_code == 404 if "{" in path else answer.status_code not in REFUSED
            else:
                right = answer.status_code == 401 and answer.headers["content-type"] == MEDIA_TYPE
            if not right or answer.status_code >= 500:
                wrong.append(f"{method} {path} with {kind}: {answer.status_code}")
    assert not wrong
    assert cells == len(routes) * len(tokens) > 100


def test_what_is_open_is_no_more_than_health_and_login(web: TestClient) -> None:
    opened = {f"{method} {path}" for method, path in routes_of(web.app) if role_of(method, path) is None}
    assert opened <= OPEN
    assert {"GET /healthz", "GET /login", "POST /login", "GET /static/{name}"} == OPEN


def test_another_teams_run_is_answered_as_one_that_is_not_there(web: TestClient, service: Service) -> None:
    theirs, other = submitted(service, "churn"), bearer(service, "credit")
    for method, path in routes_of(web.app):
        if "{run}" not in path:
            continue
        answers = [
            web.request(method, path.replace("{run}", run), headers=other).json() for run in (theirs, "0" * len(theirs))
        ]
        for answer, run in zip(answers, (theirs, "0" * len(theirs)), strict=True):
            answer.update(request_id="", detail=answer["detail"].replace(run, "RUN"))
        assert answers[0] == answers[1]


def test_a_session_ends_with_its_token_and_with_logging_out(web: TestClient, service: Service) -> None:
    header, origin = bearer(service, name="page"), {"Origin": "http://testserver"}
    token = {"token": header["Authorization"].removeprefix("Bearer ")}
    answer = web.post("/login", data=token, headers=origin)
    assert answer.status_code == 303
    assert {"httponly", "samesite=strict"} <= set(answer.headers["set-cookie"].split("; "))
    assert "secure" not in answer.headers["set-cookie"]  # this client is not behind TLS
    assert web.get("/api/v1/runs").status_code == 200
    session = web.cookies[COOKIE]
    assert web.post("/logout", headers=origin).status_code == 303
    web.cookies.set(COOKIE, session)  # as a copy that somebody kept
    assert web.get("/api/v1/runs").status_code == 401
    web.cookies.clear()
    web.post("/login", data=token, headers=origin)
    service.tokens.revoke("churn", "page", service.clock())
    assert web.get("/api/v1/runs").status_code == 401


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "none",
        "http://evil.example",
        "http://testserver.evil.example",
        "http://testserver:81",
        "//testserver",
    ],
)
def test_a_cookie_changes_nothing_for_another_sites_page(web: TestClient, service: Service, origin: str | None) -> None:
    token = bearer(service)["Authorization"].removeprefix("Bearer ")
    headers = {} if origin is None else {"Origin": origin}
    assert web.post("/login", data={"token": token}, headers=headers).status_code == 403
    web.post("/login", data={"token": token}, headers={"Origin": "http://testserver"})
    answer = web.post("/logout", headers=headers)
    assert answer.status_code == 403
    assert "Origin" in answer.json()["detail"]
    assert web.get("/api/v1/runs").status_code == 200


def test_behind_tls_the_cookie_is_for_tls_alone(service: Service) -> None:
    settings = service.settings.model_copy(update={"public_url": "https://tuning.example"})
    web = TestClient(create_app(replace(service, settings=settings)), follow_redirects=False)
    token = bearer(service)["Authorization"].removeprefix("Bearer ")
    answer = web.post("/login", data={"token": token}, headers={"Origin": "https://tuning.example"})
    assert answer.status_code == 303
    assert "secure" in answer.headers["set-cookie"].split("; ")


def test_a_browser_without_a_session_is_sent_to_the_login(web: TestClient) -> None:
    answer = web.get("/metrics", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2Fmetrics")
    assert web.get("/api/v1/runs", headers={"Accept": "text/html"}).status_code == 401
