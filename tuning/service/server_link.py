"""Asking a server of the service over HTTP: its problems as errors of ours, and again while it is away."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import httpx

from tuning.basics.documents import Json
from tuning.errors import (
    DefinitionError,
    MissingError,
    NotAllowedError,
    QuotaError,
    RefusedChangeError,
    ServiceError,
    UnavailableError,
)

PATIENCE_S = 60.0  # for which a server that is away is asked again
PAUSE_S = 0.5  # before the second request; each further pause is twice as long, up to:
LONGEST_PAUSE_S = 8.0
WAY_IN = (
    "Set TUNING_TOKEN to one, or TUNING_TOKEN_FILE to a file that holds one. Whoever runs the server makes it by "
    "`tuning token create`."
)

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


class ServerLink:
    """A connection to one server, with a token or without.

    timeout: seconds that one request may take. say: hears that the server is away, once each time that it is.
    """

    def __init__(self, server: str, token: str | None, timeout: float, say: Callable[[str], None]) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.server, self._say = server, say
        self._http = httpx.Client(base_url=server, headers=headers, timeout=timeout)

    def close(self) -> None:
        self._http.close()

    def events(self, path: str, ended: Callable[[ClientEvent], bool]) -> Iterator[ClientEvent]:
        """A stream of events, each once, until one says that it has ended.

        A server that is away meanwhile is asked again, from the event that came last.
        """
        last, pause = "", Pauses()
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            try:
                with self._http.stream("GET", path, headers=headers) as answer:
                    _check(answer, streamed=True)
                    pause = Pauses()
                    for event in _parsed_events(answer.iter_lines()):
                        last = event.id or last
                        yield event
                        if ended(event):
                            return
            except (httpx.TransportError, UnavailableError) as error:
                pause.check(self.server, error, self._say)
            pause()

    def json(self, method: str, path: str, **request: object) -> Json:
        found: Json = self.answer(method, path, **request).json()
        return found

    def answer(self, method: str, path: str, **request: object) -> httpx.Response:
        """An answer that is none of an error. What may be repeated is asked again while the server is away."""
        headers = request.get("headers")
        repeatable = method == "GET" or (isinstance(headers, Mapping) and "Idempotency-Key" in headers)
        pause = Pauses()
        while True:
            try:
                answer = self._http.request(method, path, **request)  # type: ignore[arg-type]  # as httpx declares them
                _check(answer)
                return answer
            except (httpx.TransportError, UnavailableError) as error:
                if not repeatable:
                    raise _away(self.server, error) from error
                pause.check(self.server, error, self._say)
            pause()


class Pauses:
    """Pauses between requests, each twice as long as the one before."""

    def __init__(self) -> None:
        self._next, self._end = PAUSE_S, time.monotonic() + PATIENCE_S

    def __call__(self, most: float | None = None) -> None:
        time.sleep(self._next if most is None else max(0.0, min(self._next, most)))
        self._next = min(2 * self._next, LONGEST_PAUSE_S)

    def check(self, server: str, error: Exception, say: Callable[[str], None]) -> None:
        """Raise once a server was away for too long, and at once for what another try does not change."""
        if time.monotonic() > self._end or _is_untrusted(error):
            raise _away(server, error) from error
        if self._next == PAUSE_S:
            say(f"{server} does not answer; it is asked again for {PATIENCE_S:.0f} s")


def _is_untrusted(error: BaseException) -> bool:
    """Whether OpenSSL has refused the server's certificate; httpx raises that as any refused connection, from it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _away(server: str, error: Exception) -> ServiceError | DefinitionError:
    if isinstance(error, UnavailableError):
        return error
    if _is_untrusted(error):
        return DefinitionError(
            f"{server} shows a certificate that is not trusted here ({error}). Set SSL_CERT_FILE to the file with the "
            "certificate of whoever has signed it."
        )
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
    if answer.status_code == HTTPStatus.UNAUTHORIZED:
        detail = f"{answer.url.host} knows no such token. {WAY_IN}"
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
