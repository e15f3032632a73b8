"""What is too large, too deep, too slow, too much or sent twice is refused before it costs much, and in words."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from chaos import wait_for
from paths import ROOT
from service_app import bearer, child_here, planned, request_scope
from starlette.testclient import TestClient

from tuning.basics.documents import Json
from tuning.service.children import Children
from tuning.service.database.runs import Runs
from tuning.service.plans import OPEN
from tuning.service.serve import _listen
from tuning.service.service import Service
from tuning.service.settings import ServiceSettings
from tuning.service.web.app import create_app
from tuning.service.web.problems import MEDIA_TYPE

CHURN = {"name": "churn", "data": "churn.csv", "target": "y", "trials": 2}
Receive = Callable[[], Awaitable[Mapping[str, object]]]


def sent(
    service: Service, headers: Mapping[str, str], receive: Receive, path: str = "/api/v1/runs"
) -> dict[str, object]:
    """The answer to a POST, whose body `receive` gives a piece at a time as a server does."""
    told: list[Mapping[str, object]] = []

    async def send(message: Mapping[str, object]) -> None:
        told.append(message)

    given = {"content-type": "application/json", **bearer(service, name=secrets.token_hex(4)), **headers}
    asyncio.run(create_app(service)(request_scope("POST", path, given), receive, send))
    headers_of = {name.decode(): value.decode() for name, value in told[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in told[1:])
    assert headers_of["content-type"] == MEDIA_TYPE
    return {**json.loads(body), "connection": headers_of.get("connection")}


def _made(web: TestClient, address: str) -> Json:
    """A plan, once it is made or refused."""
    wait_for(lambda: web.get(address).json()["state"] not in OPEN, what="the plan")
    found: Json = web.get(address).json()
    return found


def test_a_plan_is_made_and_a_wrong_one_says_why(
    service: Service, web: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Children, "run", child_here)
    (root,) = service.settings.data
    rows = "".join(f"{n},{n % 3},{2 * n}\n" for n in range(60))
    Path(root, "churn.csv").write_text(f"a,b,y\n{rows}")
    web.headers.update(bearer(service))
    asked = [web.post("/api/v1/plans", json={**CHURN, "target": target}) for target in ("y", "z")]
    assert [each.status_code for each in asked] == [202, 202]
    planned, refused = (_made(web, each.headers["Location"]) for each in asked)
    assert (planned["state"], planned["result"]["customers"], planned["problem"]) == ("planned", 1, None)
    assert (refused["state"], refused["result"], refused["code"]) == ("refused", None, "plan")
    assert "'z'" in refused["problem"]
    assert str(service.settings.work) not in refused["problem"]


def test_a_plan_that_an_earlier_server_has_left_is_asked_again_whether_it_may_be_made(service: Service) -> None:
    definition = {**CHURN, "data": f"{service.settings.data[0]}/churn.csv", "metric": "ours.metrics:profit"}
    left = planned(service, state="waiting", definition=definition)
    service.plans.go_on()
    wait_for(lambda: service.plans.get(left, "churn").state not in OPEN, what="the plan")
    refused = service.plans.get(left, "churn")
    assert refused.state == "refused"
    assert str(refused.problem).startswith("metric: 'ours.metrics:profit' is code that")


def test_a_key_makes_a_repeated_submission_the_same_run(service: Service, web: TestClient) -> None:
    headers = {**bearer(service), "Idempotency-Key": "once"}
    first, again = (web.post("/api/v1/runs", json=CHURN, headers=headers) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    other = web.post("/api/v1/runs", json={**CHURN, "trials": 3}, headers=headers)
    assert (other.status_code, other.headers["content-type"]) == (409, MEDIA_TYPE)
    assert other.json()["code"] == "refused_change"
    theirs = {**bearer(service, "credit"), "Idempotency-Key": "once"}
    assert web.post("/api/v1/runs", json=CHURN, headers=theirs).json()["id"] != first.json()["id"]
    assert len(service.runs.page("churn")) == 1


@pytest.mark.parametrize("key", ["a b", "\t", "a" * 256])
def test_a_key_of_other_signs_is_refused_in_words(service: Service, web: TestClient, key: str) -> None:
    answer = web.post("/api/v1/runs", json=CHURN, headers={**bearer(service), "Idempotency-Key": f"x{key}x"})
    assert (answer.status_code, answer.json()["key"]) == (422, "idempotency-key")
    assert "must " in answer.json()["detail"]
    assert "pattern" not in answer.json()["detail"]


def test_a_body_of_another_type_is_415(service: Service, web: TestClient) -> None:
    for kind in ("text/plain", "application/xml", ""):
        answer = web.post("/api/v1/runs", content="a: 1", headers={**bearer(service, name=kind), "Content-Type": kind})
        assert (answer.status_code, answer.headers["content-type"]) == (415, MEDIA_TYPE)
        assert "application/yaml" in answer.json()["detail"]
    yaml = {**bearer(service), "Content-Type": "application/yaml"}
    assert web.post("/api/v1/runs", content="data: churn.csv\ntarget: y\n", headers=yaml).status_code == 202


def test_what_nobody_foresaw_is_500_with_a_number_and_nothing_else(
    service: Service, web: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("SELECT * FROM runs in /var/lib/tuning/service.db")

    monkeypatch.setattr(Runs, "page", fail)
    answer = web.get("/api/v1/runs", headers=bearer(service))
    assert (answer.status_code, answer.headers["content-type"]) == (500, MEDIA_TYPE)
    assert not [word for word in ("SELECT", "/var", "Traceback", "RuntimeError", ".py") if word in answer.text]
    assert answer.json()["request_id"] in caplog.text
    assert "SELECT" in caplog.text  # the log has it


def test_a_database_that_fails_is_503_without_its_place(service: Service, web: TestClient) -> None:
    headers = bearer(service)
    service.database.close()
    place = service.settings.database.removeprefix("sqlite:///")
    Path(place).write_text("no database " * 1000)
    answer = web.get("/api/v1/runs", headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (503, MEDIA_TYPE)
    assert place not in answer.text
    assert "SELECT" not in answer.text


def test_a_body_that_says_it_is_too_large_is_refused_unread(service: Service) -> None:
    async def receive() -> Mapping[str, object]:
        raise AssertionError("it was read")

    told = sent(service, {"content-length": str(2**20 + 1)}, receive)
    assert (told["status"], told["connection"]) == (413, "close")
    assert "1.05 MB" in str(told["detail"])


def test_a_body_without_an_end_is_read_no_further_than_the_limit(service: Service) -> None:
    pieces = 0

    async def receive() -> Mapping[str, object]:
        nonlocal pieces
        pieces += 1
        return {"type": "http.request", "body": b" " * 65_536, "more_body": True}

    assert sent(service, {}, receive)["status"] == 413
    assert pieces == 2**20 // 65_536 + 1


def test_rows_to_predict_may_be_larger_than_a_definition(service: Service) -> None:
    async def receive() -> Mapping[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    path = f"/api/v1/runs/{'0' * 24}/predictions"
    assert sent(service, {"content-length": str(2**21)}, receive, path)["status"] == 404
    assert sent(service, {"content-length": str(2**25)}, receive, path)["status"] == 413


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("[" * 5_000, "application/json", "levels inside each other"),
        ("{" * 1_000, "application/yaml", "levels inside each other"),
        ('{"a": ' * 150 + "1" + "}" * 150, "application/json", "levels inside each other"),
        (json.dumps({str(n): n for n in range(20_001)}), "application/json", "20000 keys"),
        (json.dumps({"name": "x" * 10_001}), "application/json", "10,001 characters"),
        ('{"a": 1, "b": 2, "c": 3, "b": 4, "c": 5}', "application/json", "The key 'b' occurs twice"),
        ("a: &a [1, 2]\nb: *a\n", "application/yaml", "alias"),
        (
            json.dumps(
                {
                    **CHURN,
                    "algorithm": "grid",
                    "search_space": {f"p{n}": {"type": "choice", "values": list(range(50))} for n in range(8)},
                    "models": ["ridge"],
                }
            ),
            "application/json",
            "grid",
        ),
    ],
)
def test_what_is_too_deep_too_long_or_too_large_a_grid_is_422(
    service: Service, web: TestClient, body: str, kind: str, said: str
) -> None:
    answer = web.post("/api/v1/runs", content=body, headers={**bearer(service), "Content-Type": kind})
    assert (answer.status_code, answer.headers["content-type"]) == (422, MEDIA_TYPE), answer.text
    assert said in answer.json()["detail"]
    assert len(answer.text) < 3_000


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/api/v1/runs/a%00b", "run"),
        ("/api/v1/runs/a%00b/events", "run"),
        ("/api/v1/plans/a%00b", "plan"),
        ("/api/v1/schedules/a%00b", "schedule"),
        ("/api/v1/runs?name=a%00b", "name"),
        ("/?name=a%00b", "name"),
        ("/api/v1/runs?cursor=MS4wIGEAYg==", "cursor"),
    ],
)
def test_nul_is_in_no_text_that_is_looked_for(service: Service, web: TestClient, path: str, key: str) -> None:
    """PostgreSQL fails at it, where SQLite finds nothing."""
    answer = web.get(path, headers=bearer(service))
    assert (answer.status_code, answer.json()["key"]) == (422, key)


def test_a_path_is_short_and_plain_in_the_log(web: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tuning.service.requests")
    web.get("/%00%1b%5b31m\u202e" + "a" * 50_000)
    (line,) = (record.getMessage() for record in caplog.records)
    assert "GET /\\x00\\x1b[31m\\u202eaaa" in line
    assert len(line) < 500
    assert line.isprintable()


@pytest.mark.parametrize("time", ["nan", "inf", "-inf", "1e999", "soon"])
def test_a_cursor_that_no_page_has_given_is_422(service: Service, web: TestClient, time: str) -> None:
    cursor = base64.urlsafe_b64encode(f"{time} 5f0c9f3ab2d44e10a7c1b2d3".encode()).decode()
    answer = web.get("/api/v1/runs", params={"cursor": cursor}, headers=bearer(service))
    assert (answer.status_code, answer.headers["content-type"]) == (422, MEDIA_TYPE), answer.text
    assert answer.json()["detail"].startswith("cursor: ")


@pytest.mark.parametrize("since", ["0", "1.5", "yesterday", "2026-06-08", "2026-06-08T03:00:00"])
def test_a_time_without_its_zone_is_422(service: Service, web: TestClient, since: str) -> None:
    answer = web.get("/api/v1/runs", params={"since": since}, headers=bearer(service))
    assert (answer.status_code, answer.json()["key"]) == (422, "since")
    assert web.get(
        "/api/v1/runs", params={"since": "2026-06-08T03:00:00Z"}, headers=bearer(service, name="b")
    ).is_success


def test_a_parameter_that_comes_twice_is_422_and_not_half_ignored(service: Service, web: TestClient) -> None:
    web.headers.update(bearer(service))
    answer = web.get("/api/v1/runs?name=a&name=b")
    assert (answer.status_code, answer.json()["key"]) == (422, "name")
    assert web.get("/api/v1/runs?state=queued&state=running").status_code == 200


def test_the_page_about_the_service_has_every_limit_with_its_default() -> None:
    page = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    limits = {
        name: field for name, field in ServiceSettings.model_fields.items() if field.description and not field.title
    }
    rows = [f"| `{name}` | {field.description} | {field.default} |" for name, field in limits.items()]
    assert "\n".join(("| key | what it limits | default |", "|---|---|---|", *rows, "", "")) in page


@pytest.mark.parametrize(
    ("method", "address", "known"),
    [
        ("GET", "/api/v1/runs?stat=failed", "state"),
        ("GET", "/api/v1/runs/x/leaderboard?serach=acme", "search"),
        ("POST", "/api/v1/runs/x/predictions?intervall=0.9", "interval"),
        ("GET", "/api/v1/schedules?name=week", ""),
    ],
)
def test_a_parameter_that_is_misspelt_is_refused_where_it_would_be_ignored(
    service: Service, web: TestClient, method: str, address: str, known: str
) -> None:
    answer = web.request(method, address, headers=bearer(service))
    given = address.partition("?")[2].partition("=")[0]
    assert (answer.status_code, answer.json()["key"]) == (422, given)
    assert answer.json()["detail"].endswith(f"Did you mean {known!r}?" if known else "no such parameter.")


def test_a_page_takes_parameters_of_others(page: TestClient) -> None:
    assert page.get("/?utm_source=mail").status_code == 200


def test_the_body_of_an_answer_does_not_wait_for_the_clients_word_on_its_head(service: Service) -> None:
    settings = service.settings.model_copy(update={"port": 0})
    with _listen(settings) as listener, socket.create_connection(listener.getsockname()), listener.accept()[0] as asked:
        assert asked.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
