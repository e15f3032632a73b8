"""Definitions that are sent: how a body is read, what it may hold, and what the OpenAPI document tells of it."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import BeforeValidator
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from search_spaces import SpaceError
from search_spaces.yaml_text import DEEPEST, dump_yaml, parse_yaml
from tuning.basics.wording import amount, shorten
from tuning.errors import DefinitionError

MOST_VALUES = 20_000  # keys and values of a document
LONGEST_TEXT = 10_000
NO_TEXT = re.compile("[\0\ud800-\udfff]")  # NUL, or half of a pair
TOO_LONG = (
    f"The definition holds more than {MOST_VALUES} keys and values. Many customers have room in a manifest that is CSV "
    "or Parquet."
)
TOO_DEEP = f"The definition has more than {DEEPEST} levels inside each other; write it flatter."
JSON = ("application/json",)
YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")


@dataclass(frozen=True)
class SentDocument:
    """A mapping that was sent. digest: SHA-256 of the body. typed: the body, where somebody typed it on the page."""

    values: Mapping[str, object]
    digest: str
    typed: str | None = None


async def sent_document(request: Request) -> SentDocument:
    """The body as a mapping, from JSON or YAML; a dependency of the routes that take a definition."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (*JSON, *YAML):
        raise HTTPException(415, f"Content-Type {shorten(repr(kind))} is not taken. Send {JSON[0]} or {YAML[0]}.")
    body = await request.body()
    return await run_in_threadpool(read_document, body, kind in JSON)


def read_document(body: bytes, is_json: bool) -> SentDocument:
    """Read the mapping in a body; `DefinitionError` where it is none, or too long or too deep."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DefinitionError(f"The definition is no UTF-8 text ({error.reason} at byte {error.start}).") from error
    # Each value takes a comma, a colon, a bracket or a line; so what is far too long is refused before it is parsed.
    if sum(map(text.count, ",:[{\n")) > 2 * MOST_VALUES:
        raise DefinitionError(TOO_LONG)
    values = _json(text) if is_json else _yaml(text)
    if not isinstance(values, dict):
        raise DefinitionError("The definition holds no mapping of keys to values, such as `target: churned`.")
    if _checked(values) > MOST_VALUES:
        raise DefinitionError(TOO_LONG)
    return SentDocument(values, sha256(body).hexdigest())


def as_yaml(definition: Mapping[str, object]) -> str:
    """Return an accepted definition as YAML, without what the server has added."""
    return dump_yaml({name: value for name, value in definition.items() if name != "mlflow"})


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
        raise DefinitionError(TOO_DEEP) from None
    except ValueError as error:
        raise DefinitionError(f"The definition is not JSON: {error}.") from None


def _yaml(text: str) -> object:
    try:
        return parse_yaml(text, "the definition")
    except SpaceError as error:
        raise DefinitionError(f"{error}.") from error


def _checked(value: object, depth: int = 0) -> int:
    """Return the number of keys and values, of which none is what no database and no YAML file can hold.

    depth: levels around the value.
    """
    if depth > DEEPEST:
        raise DefinitionError(TOO_DEEP)
    if isinstance(value, float) and not math.isfinite(value):
        raise DefinitionError(f"The definition holds {value!r}; finite numbers are expected.")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise DefinitionError("The definition holds a number of more than 63 bits; write it as a text, or smaller.")
    if isinstance(value, str):
        _check_text(value)
    inside = (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(_checked(inner, depth + 1) for inner in inside)


def _check_text(value: str) -> None:
    if len(value) > LONGEST_TEXT:
        raise DefinitionError(
            f"{shorten(repr(value))} has {amount(len(value), 'character')}; at most {LONGEST_TEXT} are taken."
        )
    if NO_TEXT.search(value):
        raise DefinitionError(f"{shorten(ascii(value))} holds a character that no text has: NUL, or half of a pair.")


def _visible(value: object) -> object:
    """Return a key; `ValueError` says which signs it may have."""
    if isinstance(value, str) and not re.fullmatch("[!-~]{1,255}", value):
        raise ValueError("must be up to 255 letters, digits and signs of ASCII, without blanks, such as a UUID")
    return value


SentDefinition = Annotated[SentDocument, Depends(sent_document)]
IdempotencyKey = Annotated[
    str | None,
    BeforeValidator(_visible),
    Header(
        description="A text of your own, such as a UUID: sent again with the same body, it is the same submission; "
        "with another body it is 409.",
        json_schema_extra={"pattern": "^[!-~]+$", "maxLength": 255},
        examples=["6f1c2a52-8f9e-4f0b-9a53-1d2c3b4a5e6f"],
    ),
]
EXAMPLE = {"name": "churn", "data": "churn.csv", "by": "region", "target": "churned", "trials": 20}
#: The service's own keys; `tuning schema` prints those of a definition.
SCHEMA: dict[str, object] = {
    "type": "object",
    "description": "A definition (`tuning schema` prints its keys), and the service's `priority` and `schedule`.",
    "required": [],
    "properties": {
        "priority": {
            "type": "integer",
            "minimum": -1000,
            "maximum": 1000,
            "default": 0,
            "description": "Among the team's runs; the highest is first.",
        },
        "schedule": {
            "description": "Submit again at these times: a cron expression, in UTC where no time zone is given.",
            "anyOf": [
                {"type": "string", "maxLength": 255, "examples": ["0 3 * * 1"]},
                {
                    "type": "object",
                    "required": ["cron"],
                    "additionalProperties": False,
                    "properties": {
                        "cron": {"type": "string", "maxLength": 255},
                        "time_zone": {"type": "string", "maxLength": 64, "examples": ["Europe/Berlin"]},
                    },
                },
            ],
        },
        "storage": False,
        "mlflow": False,
    },
    "additionalProperties": True,
}
YAML_EXAMPLE = (
    "name: churn\ndata: churn.csv\nby: region\ntarget: churned\ntrials: 20\n"
    "pool: auto  # customers may learn from each other's rows; off keeps them apart\n"
)
BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON[0]: {"schema": SCHEMA, "example": EXAMPLE},
            YAML[0]: {"schema": SCHEMA, "example": YAML_EXAMPLE},
        },
    }
}
LOCATION = {"Location": {"description": "Where to look.", "schema": {"type": "string"}}}


def _link(operation: str, parameter: str) -> dict[str, object]:
    return {"operationId": operation, "parameters": {parameter: "$response.body#/id"}}


RUN_LINKS = {operation: _link(operation, "run") for operation in ("show_run", "stop", "cancel", "resume", "delete_run")}
PLAN_LINKS = {"show_plan": _link("show_plan", "plan")}
