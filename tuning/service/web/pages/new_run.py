"""A new run: a definition is typed, planned by a child process, and submitted."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse, Response

from tuning.basics.wording import shorten
from tuning.errors import DefinitionError, NotAllowedError, QuotaError
from tuning.service.plans import OPEN
from tuning.service.settings import ServiceSettings
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import YAML_EXAMPLE, as_yaml, read_document
from tuning.service.web.pages.rendering import Render
from tuning.service.web.problems import LONGEST
from tuning.service.web.routes.plans import TeamPlan, ask_plan
from tuning.service.web.routes.runs import submit
from tuning.storage.names import is_uri, mask, mask_in

router = APIRouter(include_in_schema=False)
MOST_LOOKED_AT, MOST_NAMES = 1000, 10  # of what a folder holds
FORMATS = (".csv", ".parquet")  # of a table in the example
KEY = r"[0-9a-f]{32}"  # of a form, so that a second press of its button is no second run


@router.get("/runs/new")
def new_run_page(service: ServiceOf, holder: Asking, render: Render) -> Response:
    """Show the empty form."""
    return render("new.html", 200, **_form(service.settings, holder.team, ""))


@router.post("/runs/new")
def send(
    service: ServiceOf,
    holder: Asking,
    render: Render,
    definition: Annotated[str, Form()] = "",
    action: Annotated[Literal["plan", "submit"], Form()] = "plan",
    key: Annotated[str, Form(pattern=KEY)] = "",
) -> Response:
    """Plan what was typed, or submit it. What is wrong is said above the form, which keeps the text."""
    typed = definition.replace("\r\n", "\n")
    try:
        body = read_document(typed.encode("utf-8", "replace"), is_json=False)  # what is JSON is YAML
        if action == "plan":
            plan = ask_plan(service, holder, replace(body, typed=typed), Response())
            return RedirectResponse(f"/plans/{plan.id}", 303)
        run = submit(service, holder, body, Response(), f"page-{key or secrets.token_hex(16)}-{body.digest}")
        return RedirectResponse(f"/runs/{run.id}", 303)
    except (DefinitionError, NotAllowedError, QuotaError) as error:
        problem = shorten(mask_in(str(error)), LONGEST)
        return render("new.html", 422, **_form(service.settings, holder.team, typed), problem=problem)


@router.get("/plans/{plan}")
def plan_page(found: TeamPlan, service: ServiceOf, render: Render) -> Response:
    """Show what a definition would run, or why it cannot, or that this is still being found out."""
    names = service.settings.names(found.team)
    return render(
        "plan.html",
        plan=found,
        waits=found.state in OPEN,
        asks_slots="slots" in found.definition,
        definition=as_yaml(names.document(found.definition)) if found.typed is None else found.typed,
        key=secrets.token_hex(16),
    )


def _form(settings: ServiceSettings, team: str, typed: str) -> Mapping[str, object]:
    """Return what the form's page shows; data as the team's definitions name them."""
    own = [Path(place).absolute() for place in (settings.storage, str(settings.work)) if not is_uri(place)]
    roots = [
        (mask(root), []) if is_uri(root) else (Path(root).name or root, _names_in(root, own))
        for root in settings.roots(team)
    ]
    return {"definition": typed, "key": secrets.token_hex(16), "roots": roots, "most": MOST_NAMES,
            "example": _example([name for _, names in roots for name in names[:MOST_NAMES]])}  # fmt: skip


def _names_in(folder: str, own: Sequence[Path]) -> list[str]:
    """Return what a folder holds, folders with a slash. own: folders that are the server's."""
    try:
        with os.scandir(folder) as entries:
            return sorted(
                f"{entry.name}{'/' if entry.is_dir() else ''}"
                for entry in islice(entries, MOST_LOOKED_AT)
                if not entry.name.startswith(".") and not any(each.is_relative_to(entry.path) for each in own)
            )
    except OSError:
        return []


def _example(names: Sequence[str]) -> str:
    """Return a definition with data that are there, where it can be told: a folder of files, or one table."""
    folder = next((name for name in names if name.endswith("/")), None)
    if folder is not None and not any(name.endswith(FORMATS) for name in names):
        return YAML_EXAMPLE.replace("data: churn.csv\nby: region\n", f"data: {folder}*.csv\n")
    return YAML_EXAMPLE.replace("churn.csv", next((name for name in names if name.endswith(FORMATS)), "churn.csv"))
