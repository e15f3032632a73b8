"""Definitions that are sent: how a body is taken, and what the OpenAPI document says of it."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header
from pydantic import BeforeValidator

from tuning.service.web.limits import JSON, YAML, SentDocument, sent_document

SentDefinition = Annotated[SentDocument, Depends(sent_document)]


def _visible(value: object) -> object:
    """Return a key; `ValueError` says which signs it may have."""
    if isinstance(value, str) and not re.fullmatch("[!-~]{1,255}", value):
        raise ValueError("must be up to 255 letters, digits and signs of ASCII, without blanks, such as a UUID")
    return value


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
#: Keys of the service's own beside those of the definition, which `tuning schema` prints.
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
YAML_EXAMPLE = "name: churn\ndata: churn.csv\nby: region\ntarget: churned\ntrials: 20\n"
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
