"""Who waits for something that takes long holds nobody else up."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Mapping
from pathlib import Path

import anyio.to_thread
import httpx
import pytest
from chaos import wait_for
from fastapi import FastAPI
from service_app import bearer, finished, request_scope, submitted

from tuning.errors import QuotaError, RunError
from tuning.service.children import Children
from tuning.service.service import Service
from tuning.service.states import RunState
from tuning.service.views.tables import RunTables
from tuning.service.views.views import KIND
from tuning.service.web.app import create_app


class Stream:
    """A stream of events that somebody has open."""

    def __init__(self, app: FastAPI, path: str, headers: Mapping[str, str]) -> None:
        self.status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.leaves = asyncio.Event()
        self.task = asyncio.ensure_future(app(request_scope("GET", path, headers), self._receive, self._send))

    async def _receive(self) -> Mapping[str, object]:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Mapping[str, object]) -> None:
        if message["type"] == "http.response.start":
            self.status.set_result(int(str(message["status"])))


def test_a_token_has_some_streams_at_once_and_gets_another_when_one_has_ended(service: Service) -> None:
    few = service.settings.model_copy(update={"streams_per_token": 2})
    app = create_app(dataclasses.replace(service, settings=few, stream_s=3600.0, look_s=0.01))
    path, mine, ours = f"/api/v1/runs/{submitted(service)}/events", bearer(service), bearer(service, name="second")

    async def opened() -> list[int]:
        streams = [Stream(app, path, mine) for _ in range(2)]
        found = [await stream.status for stream in streams]
        refused, other = Stream(app, path, mine), Stream(app, path, ours)
        found += [await refused.status, await other.status]
        streams[0].leaves.set()
        await streams[0].task
        again = Stream(app, path, mine)
        found.append(await again.status)
        for stream in (streams[1], other, again):
            stream.leaves.set()
            await stream.task
        return found

    assert asyncio.run(asyncio.wait_for(opened(), 60)) == [200, 200, 429, 200, 200]


def test_what_children_make_is_waited_for_without_the_threads_of_others(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def child(*_: object, **__: object) -> None:
        assert go_on.wait(60)
        raise RunError("no process is started here")

    monkeypatch.setattr(Children, "run", child)
    headers, runs = bearer(service), [finished(service, str(tmp_path / "run")) for _ in range(4)]
    looks = [f"/api/v1/runs/{runs[0]}/{kind}" for kind in ("leaderboard", "customer?id=a", "report?id=a")]
    looks += [f"/runs/{runs[1]}", f"/runs/{runs[2]}/customer?id=a", f"/runs/{runs[3]}/pictures/picture-0.svg"]

    async def asked() -> tuple[list[int], list[int]]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = 1
        transport = httpx.ASGITransport(app=create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as web:
            waiting = [asyncio.ensure_future(web.get(look)) for look in looks]
            try:
                others = [(await web.get(path)).status_code for path in ("/healthz", "/readyz", "/api/v1/runs")]
                assert not any(each.done() for each in waiting)
            finally:
                go_on.set()
            return others, [(await each).status_code for each in waiting]

    others, after = asyncio.run(asyncio.wait_for(asked(), 40))
    assert others == [200] * 3
    assert after == [404, 404, 409, 200, 404, 404]  # the run's page says that there are no tables


def test_few_children_write_tables_at_once_and_one_team_does_not_take_them_all(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def write(*_: object, **__: object) -> None:
        assert go_on.wait(60)
        raise RunError("none are written here")

    monkeypatch.setattr(Children, "run", write)
    views = service.views
    of_team = [service.runs.get(finished(service, "x")) for _ in range(KIND.most_open + 1)]
    begun = [views.ask(run) for run in of_team[: KIND.most_open]]
    wait_for(lambda: all(each.running() for each in begun[: KIND.at_once]), what="the first children")
    with pytest.raises(QuotaError, match="as many as may be at once"):
        views.ask(of_team[-1])
    begun.append(views.ask(service.runs.get(finished(service, "x", "credit"))))
    assert not any(each.running() for each in begun[KIND.at_once :])
    older = RunTables.__new__(RunTables)  # such as were written before
    older.folder = Path("0")
    views._shown[of_team[-1].id] = older
    assert views.ask(dataclasses.replace(of_team[-1], state=RunState.RUNNING)).result() is older
    go_on.set()
    assert all("none are written here" in str(each.exception(60)) for each in begun)
    service.children.close()
