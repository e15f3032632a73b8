"""How much one asks: requests in a minute, and the length and depth of what is sent."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from search_spaces import SpaceError
from search_spaces.yaml_text import DEEPEST, parse_yaml
from tuning.basics.wording import amount, did_you_mean, shorten
from tuning.errors import DefinitionError, QuotaError

MOST_CALLERS = 10_000  # whose requests are remembered
MOST_VALUES = 20_000  # keys and values of a document
LONGEST_TEXT = 10_000
LISTS = ("state",)  # parameters of a query that may come several times
WITHOUT_NUL = r"^[^\x00]*$"  # of a text that is looked for in the database: PostgreSQL takes no other
JSON = ("application/json",)
YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")


class RateLimiter:
    """Requests in a minute, by any name of who asks: as many at once, and then as many as time gives back.

    Only the event loop uses it, so it needs no lock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str, per_minute: int) -> float | None:
        """Count a request. None where there is room, else the seconds until there is."""
        left = self._room(who, per_minute)
        if left < 1:
            return (1 - left) * 60 / per_minute
        self._left[who] = (left - 1, self._clock())
        self._left.move_to_end(who)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        return None

    def _room(self, who: str, per_minute: int) -> float:
        left, at = self._left.get(who, (float(per_minute), self._clock()))
        return min(float(per_minute), left + (self._clock() - at) * per_minute / 60)


class OpenStreams:
    """How many streams each has open, by any name of who asks. Only the event loop uses it."""

    def __init__(self) -> None:
        self._open = Counter[str]()

    @contextlib.contextmanager
    def opened(self, who: str, most: int) -> Iterator[None]:
        """Count a stream for as long as it is open; `QuotaError` beyond the most."""
        if self._open[who] >= most:
            raise QuotaError(
                f"{amount(most, 'stream')} of events are open with this token, as many as may be at once. Close one, "
                "or ask GET /api/v1/runs now and then.",
                later=10.0,
            )
        self._open[who] += 1
        try:
            yield
        finally:
            self._open[who] -= 1
            if not self._open[who]:
                del self._open[who]


async def check_query(request: Request) -> None:
    """`DefinitionError` for a parameter of the query that would be ignored: a second one, or one that the API lacks."""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    operation = request.app.openapi()["paths"].get(request.scope["route"].path, {}).get(request.method.lower())
    taken = [each["name"] for each in (operation or {}).get("parameters", ()) if each["in"] == "query"]
    for unknown in counts.keys() - {*taken} if operation else ():
        raise DefinitionError.about(shorten(unknown), f"there is no such parameter.{did_you_mean(unknown, taken)}")
    for name, count in counts.items():
        if count > 1 and name not in LISTS:
            raise DefinitionError.about(shorten(name), f"it was given {amount(count, 'time')}. Give it once.")


@dataclass(frozen=True)
class SentDocument:
    """A mapping that was sent. digest: SHA-256 of the body."""

    values: Mapping[str, object]
    digest: str


async def sent_document(request: Request) -> SentDocument:
    """The body as a mapping, from JSON or YAML; a dependency of the routes that take a definition."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (*JSON, *YAML):
        raise HTTPException(415, f"Content-Type {shorten(repr(kind))} is not taken. Send {JSON[0]} or {YAML[0]}.")
    body = await request.body()
    return SentDocument(await run_in_threadpool(parsed, body, kind in JSON), sha256(body).hexdigest())


def parsed(body: bytes, is_json: bool) -> Mapping[str, object]:
    """The mapping in a body; `DefinitionError` where it is none, or too long or too deep."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"The definition is no UTF-8 text ({error.reason} at byte {error.start}).") from error
    # Each value takes a comma, a colon, a bracket or a line; so what is far too long is refused before it is parsed.
    if sum(map(text.count, ",:[{\n")) > 2 * MOST_VALUES:
        raise DefinitionError(_too_long())
    values = _json(text) if is_json else _yaml(text)
    if not isinstance(values, dict):
        raise DefinitionError("The definition holds no mapping of keys to values, such as `target: churned`.")
    _check(values)
    return values


def _too_long() -> str:
    return (
        f"The definition holds more than {MOST_VALUES} keys and values. Many customers have room in a manifest that "
        "is CSV or Parquet."
    )


def _json(text: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(name for name, _ in pairs)
            twice = next(name for name in times if times[name] > 1)
            raise DefinitionError(f"The key {shorten(repr(twice))} occurs twice; remove one of them.")
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise DefinitionError(_too_deep()) from None
    except ValueError as error:
        raise DefinitionError(f"The definition is not JSON: {error}.") from None


def _yaml(text: str) -> object:
    try:
        return parse_yaml(text, "the definition")
    except SpaceError as error:
        raise DefinitionError(f"{error}.") from error


def _too_deep() -> str:
    return f"The definition has more than {DEEPEST} levels inside each other; write it flatter."


def _check(values: object) -> None:
    """Nothing that no database, no YAML file and no later look at it can hold."""
    for number, value in enumerate(_all_in(values)):
        if number >= MOST_VALUES:
            raise DefinitionError(_too_long())
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            raise DefinitionError(f"The definition holds {value!r}; finite numbers are expected.")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise DefinitionError("The definition holds a number of more than 63 bits; write it as a text, or smaller.")
        if isinstance(value, str):
            _check_text(value)


def _check_text(value: str) -> None:
    if len(value) > LONGEST_TEXT:
        raise DefinitionError(
            f"{shorten(repr(value))} has {amount(len(value), 'character')}; at most {LONGEST_TEXT} are taken."
        )
    if "\0" in value or (not value.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in value)):
        raise DefinitionError(f"{shorten(ascii(value))} holds a character that no text has: NUL, or half of a pair.")


def _all_in(values: object) -> Iterator[object]:
    """Every key and value, without recursion."""
    waiting: list[tuple[object, int]] = [(values, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > DEEPEST:
            raise DefinitionError(_too_deep())
        yield value
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield key
                waiting.append((inner, depth + 1))
        elif isinstance(value, list):
            waiting += [(inner, depth + 1) for inner in value]
