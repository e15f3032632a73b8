"""The service from Python: submit definitions to a server, and use what its runs have found."""

from __future__ import annotations

import io
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import httpx

from search_spaces import SpaceError
from search_spaces.yaml_text import parse_yaml
from tuning.basics.documents import Json
from tuning.basics.public import Public
from tuning.errors import (
    DefinitionError,
    MissingError,
    NotAllowedError,
    QuotaError,
    RefusedChangeError,
    ServiceError,
    UnavailableError,
)
from tuning.reporting.cells import paragraph
from tuning.service.states import ENDED, RunState
from tuning.service.token_files import token_for

if TYPE_CHECKING:
    import pandas as pd

API = "/api/v1"
ADDRESS = "http://127.0.0.1:8420"  # where `tuning serve` listens by default
PATIENCE_S = 60.0  # for which a server that is away is asked again
PAUSE_S = 0.5  # before the second request; each further pause is twice as long, up to:
LONGEST_PAUSE_S = 8.0
SHOWN = 20  # customers, in a notebook

#: What an answer's status says; other errors are a `ServiceError`.
ERRORS: Mapping[int, type[ServiceError] | type[DefinitionError]] = {
    HTTPStatus.UNAUTHORIZED: NotAllowedError,
    HTTPStatus.FORBIDDEN: NotAllowedError,
    HTTPStatus.NOT_FOUND: MissingError,
    HTTPStatus.CONFLICT: RefusedChangeError,
    HTTPStatus.UNPROCESSABLE_ENTITY: DefinitionError,
    HTTPStatus.TOO_MANY_REQUESTS: QuotaError,
    HTTPStatus.SERVICE_UNAVAILABLE: UnavailableError,
}


@dataclass(frozen=True)
class ClientEvent:
    """What a run's stream has told.

    Attributes:
        kind: "state" or "progress".
        id: of a change of state; empty for progress, of which only the newest counts.
        data: the event's document.
    """

    kind: str
    id: str
    data: Json


class TuningClient(Public):
    """A server of the tuning service.

    server: its address; by default `TUNING_SERVER`, else that of `tuning serve` on this machine. token: by default
    `TUNING_TOKEN`, the file that `TUNING_TOKEN_FILE` names, or what `tuning serve` has kept for this user. timeout:
    seconds that one request may take.

    Errors are those of `tuning.errors`, with the server's sentences: `DefinitionError`, `MissingError`, …
    """

    public = ("submit", "plan", "run", "runs", "wait", "events", "leaderboard", "stop", "cancel", "resume",
              "delete")  # fmt: skip
    elsewhere: ClassVar[Mapping[str, str]] = {"fit": "submit(…)", "status": "run(ID)", "list": "runs()"}

    def __init__(self, server: str | None = None, token: str | None = None, timeout: float = 60.0) -> None:
        self.server = (server or os.environ.get("TUNING_SERVER") or ADDRESS).rstrip("/")
        if urlsplit(self.server).scheme not in ("http", "https"):
            raise DefinitionError(f"server {self.server!r} is not an address. Give one such as {ADDRESS}.")
        found = token or token_for(self.server)
        headers = {"Authorization": f"Bearer {found}"} if found else {}
        self._http = httpx.Client(base_url=self.server, headers=headers, timeout=timeout)

    def __enter__(self) -> TuningClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TuningClient({self.server!r})"

    def close(self) -> None:
        self._http.close()

    def submit(
        self, definition: Mapping[str, object] | str | Path, *, key: str | None = None, **changes: object
    ) -> RemoteRun:
        """Queue a run.

        definition: its keys, or a YAML or JSON file; data is named below the server's folders. changes: keys in place
        of those, also `priority` and `schedule`. key: of a submission that may be repeated: the same key with the same
        definition is the same run. One is made anew by default, so that a server that was away is asked again safely.
        """
        document = {**_document(definition), **changes}
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return RemoteRun(self, self._json("POST", f"{API}/runs", json=document, headers=headers))

    def plan(self, definition: Mapping[str, object] | str | Path, **changes: object) -> Json:
        """What would run, as `tuning plan --output json` prints it; `DefinitionError` says what is wrong."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        plan = self._json("POST", f"{API}/plans", json={**_document(definition), **changes}, headers=headers)
        pause = _Pauses()
        while plan["result"] is None and plan["problem"] is None:
            pause()
            plan = self._json("GET", plan["links"]["self"])
        if plan["problem"] is not None:
            raise DefinitionError(plan["problem"])
        found: Json = plan["result"]
        return found

    def run(self, run: str) -> RemoteRun:
        """A run of the team by its id."""
        return RemoteRun(self, self._json("GET", f"{API}/runs/{run}"))

    def runs(self, *, state: str | None = None, name: str | None = None) -> Iterator[RemoteRun]:
        """The team's runs, the newest first."""
        asked = {key: value for key, value in {"state": state, "name": name}.items() if value is not None}
        while True:
            page = self._json("GET", f"{API}/runs", params=asked)
            yield from (RemoteRun(self, each) for each in page["runs"])
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def wait(self, run: str, timeout: float | None = None) -> RemoteRun:
        """The run once it has ended, or after `timeout` seconds as it is then."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = _Pauses()
        while (found := self.run(run)).running and (end is None or time.monotonic() < end):
            pause(None if end is None else end - time.monotonic())
        return found

    def events(self, run: str) -> Iterator[ClientEvent]:
        """Every change of a run's state once, and its newest progress, until it has ended.

        A server that is away meanwhile is asked again, from the event that came last.
        """
        last, pause = "", _Pauses()
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            try:
                with self._http.stream("GET", f"{API}/runs/{run}/events", headers=headers) as answer:
                    _check(answer, streamed=True)
                    pause = _Pauses()
                    for event in _parsed_events(answer.iter_lines()):
                        last = event.id or last
                        yield event
                        if event.kind == "state" and event.data["state"] in ENDED:
                            return
            except (httpx.TransportError, UnavailableError) as error:
                pause.check(self.server, error)
            pause()

    def leaderboard(self, run: str, sort: str = "customer") -> pd.DataFrame:
        """One row per customer, as `RunResult.leaderboard`."""
        import pandas as pd

        answer = self._answer("GET", f"{API}/runs/{run}/leaderboard", params={"sort": sort, "format": "parquet"})
        return pd.read_parquet(io.BytesIO(answer.content))

    def stop(self, run: str) -> RemoteRun:
        """End a run so that it can be resumed; what is recorded is kept."""
        return RemoteRun(self, self._json("POST", f"{API}/runs/{run}/stop"))

    def cancel(self, run: str) -> RemoteRun:
        """End a run for good; what is recorded is kept until it is deleted."""
        return RemoteRun(self, self._json("POST", f"{API}/runs/{run}/cancel"))

    def resume(self, run: str, *, trials: int | None = None, slots: int | None = None) -> RemoteRun:
        """Queue a run again that has stopped, failed or finished. trials, slots: in place of those it had."""
        changes = {name: value for name, value in (("trials", trials), ("slots", slots)) if value is not None}
        return RemoteRun(self, self._json("POST", f"{API}/runs/{run}/resume", json=changes))

    def delete(self, run: str) -> None:
        """Delete a run that has ended, with its directory."""
        self._answer("DELETE", f"{API}/runs/{run}")

    def _json(self, method: str, path: str, **request: object) -> Json:
        found: Json = self._answer(method, path, **request).json()
        return found

    def _answer(self, method: str, path: str, **request: object) -> httpx.Response:
        """An answer that is none of an error. What may be repeated is asked again while the server is away."""
        headers = request.get("headers")
        repeatable = method == "GET" or (isinstance(headers, Mapping) and "Idempotency-Key" in headers)
        pause = _Pauses()
        while True:
            try:
                answer = self._http.request(method, path, **request)  # type: ignore[arg-type]  # as httpx declares them
                _check(answer)
                return answer
            except (httpx.TransportError, UnavailableError) as error:
                if not repeatable:
                    raise _away(self.server, error) from error
                pause.check(self.server, error)
            pause()


class RemoteRun(Public):
    """A run of a server as it was when this was asked for; in a notebook it shows how far it is, and its customers."""

    public = (
        "id",
        "name",
        "state",
        "reason",
        "running",
        "progress",
        "outcome",
        "leaderboard",
        "stop",
        "cancel",
        "resume",
        "wait",
        "to_dict",
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("kill", "interrupt", "terminate"), "cancel()"),
        **dict.fromkeys(("join", "get", "result"), "wait()"),
    }

    def __init__(self, client: TuningClient, message: Json) -> None:
        self._client, self._message = client, message

    @property
    def id(self) -> str:
        """By which the server knows it."""
        return str(self._message["id"])

    @property
    def name(self) -> str:
        """Of its definition."""
        return str(self._message["name"])

    @property
    def state(self) -> RunState:
        """`queued`, `running`, `stopping`, `stopped`, `finished`, `failed` or `cancelled`."""
        return RunState(self._message["state"])

    @property
    def reason(self) -> str:
        """Why it is in that state."""
        return str(self._message["reason"])

    @property
    def running(self) -> bool:
        """Whether it has not ended yet; a run that waits counts, too."""
        return self.state not in ENDED

    @property
    def progress(self) -> Json | None:
        """How far it said it is; None before its first word."""
        found: Json | None = self._message["progress"]
        return found

    @property
    def outcome(self) -> Json | None:
        """What the run said at its end, such as how many `customers` have `succeeded`; None before."""
        found: Json | None = self._message["outcome"]
        return found

    def to_dict(self) -> Json:
        """All that the server has said of it."""
        return self._message

    def leaderboard(self, sort: str = "customer") -> pd.DataFrame:
        """One row per customer."""
        return self._client.leaderboard(self.id, sort)

    def stop(self) -> RemoteRun:
        """End it so that it can be resumed."""
        return self._client.stop(self.id)

    def cancel(self) -> RemoteRun:
        """End it for good."""
        return self._client.cancel(self.id)

    def resume(self, *, trials: int | None = None, slots: int | None = None) -> RemoteRun:
        """Queue it again."""
        return self._client.resume(self.id, trials=trials, slots=slots)

    def wait(self, timeout: float | None = None) -> RemoteRun:
        """The same run once it has ended, or after `timeout` seconds as it is then."""
        return self._client.wait(self.id, timeout)

    def __repr__(self) -> str:
        return f"RemoteRun({self.name!r} {self.id}: {self.sentence})"

    @property
    def sentence(self) -> str:
        """Where it stands, in part of a sentence."""
        place = self._message["place"]
        where = f"{self.state}, place {place} in the queue" if place else str(self.state)
        told = self.progress["line"] if self.progress is not None else ""
        return ": ".join(text for text in (where, self.reason or told) if text)

    def _repr_html_(self) -> str:
        shown = paragraph(repr(self))
        try:
            return f"{shown}{self.leaderboard().head(SHOWN)._repr_html_()}"
        except ServiceError:
            return shown  # nothing is recorded yet


class _Pauses:
    """Pauses between requests, each twice as long as the one before."""

    def __init__(self) -> None:
        self._next, self._end = PAUSE_S, time.monotonic() + PATIENCE_S

    def __call__(self, most: float | None = None) -> None:
        time.sleep(self._next if most is None else max(0.0, min(self._next, most)))
        self._next = min(2 * self._next, LONGEST_PAUSE_S)

    def check(self, server: str, error: Exception) -> None:
        """Raise once the server was away for too long."""
        if time.monotonic() > self._end:
            raise _away(server, error) from error


def _away(server: str, error: Exception) -> ServiceError:
    if isinstance(error, UnavailableError):
        return error
    return UnavailableError(f"{server} does not answer: {error}. Is `tuning serve` running there? Then try again.")


def _check(answer: httpx.Response, *, streamed: bool = False) -> None:
    """Raise what a problem says."""
    if answer.is_success:
        return
    if streamed:
        answer.read()
    try:
        problem: Json = answer.json()
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        detail = f"{answer.url.host} answers {answer.status_code} {answer.reason_phrase}: {answer.text[:200]}"
    kind: Callable[[str], Exception] = ERRORS.get(answer.status_code, ServiceError)
    raise kind(detail)


def _parsed_events(lines: Iterator[str]) -> Iterator[ClientEvent]:
    """The events of a stream (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and "data" in fields else value
        elif "data" in fields:
            yield ClientEvent(fields.get("event", "message"), fields.get("id", ""), json.loads(fields["data"]))
            fields = {}
        else:
            fields = {}


def _document(definition: Mapping[str, object] | str | Path) -> dict[str, object]:
    """The keys of a definition; a file's name is its `name` where it has none."""
    if isinstance(definition, Mapping):
        return dict(definition)
    file = Path(definition)
    try:
        found = parse_yaml(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise DefinitionError(f"{file} cannot be read: {error.strerror}. Give a file with a definition.") from error
    except (UnicodeDecodeError, SpaceError) as error:
        raise DefinitionError(f"{file}: {error}") from error
    if not isinstance(found, Mapping):
        raise DefinitionError(f"{file} holds no keys of a definition. `tuning init` writes one.")
    return {"name": file.stem, **found}
