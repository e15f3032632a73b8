"""A new run: a definition is typed, planned by a child process, and submitted."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse, Response

from search_spaces.yaml_text import dump_yaml
from tuning.basics.documents import Json
from tuning.basics.wording import better_text, shorten
from tuning.errors import DefinitionError, NotAllowedError, QuotaError
from tuning.service.admission import admit
from tuning.service.database.tokens import TokenHolder
from tuning.service.plans import OPEN, AskedPlan
from tuning.service.service import Service
from tuning.service.settings import ServiceSettings
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import YAML_EXAMPLE, parsed
from tuning.service.web.pages.rendering import Render
from tuning.service.web.problems import LONGEST
from tuning.service.web.routes.plans import PlanId
from tuning.storage.names import is_uri, mask, mask_in

router = APIRouter(include_in_schema=False)
MOST_LOOKED_AT, MOST_NAMES = 1000, 10  # of what a folder holds
FORMATS = (".csv", ".parquet")  # of a table in the example
KEY = r"[0-9a-f]{32}"  # of a form, so that a second press of its button is no second run


@dataclass(frozen=True)
class DataRoot:
    """Where data may be: a folder by its last name with some of what it holds, or a URI."""

    name: str
    holds: Sequence[str] = ()
    has_more: bool = False


@router.get("/runs/new")
def new_run_page(service: ServiceOf, holder: Asking, render: Render) -> Response:
    """The form, empty."""
    return render("new.html", 200, **_form(service, holder.team, ""))


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
        if action == "plan":
            return RedirectResponse(f"/plans/{_ask_plan(service, holder.team, typed)}", 303)
        return RedirectResponse(f"/runs/{_submit(service, holder, typed, key)}", 303)
    except (DefinitionError, NotAllowedError, QuotaError) as error:
        problem = shorten(mask_in(str(error)), LONGEST)
        return render("new.html", 422, **_form(service, holder.team, typed), problem=problem)


@router.get("/plans/{plan}")
def plan_page(plan: PlanId, service: ServiceOf, holder: Asking, render: Render) -> Response:
    """What a definition would run, or why it cannot, or that this is still being found out."""
    found = service.plans.get(plan, holder.team)
    return render(
        "plan.html",
        plan=found,
        waits=found.state in OPEN,
        facts=[] if found.result is None else _facts(found.result, "slots" in found.definition),
        notes=[] if found.result is None else [note["text"] for note in found.result["notes"]],
        definition=_typed(found, service.settings),
        key=secrets.token_hex(16),
    )


def _form(service: Service, team: str, typed: str) -> Mapping[str, object]:
    """What the form's page shows."""
    roots = _roots(service.settings, team)
    return {"definition": typed, "key": secrets.token_hex(16), "roots": roots, "example": _example(roots)}


def _example(roots: Sequence[DataRoot]) -> str:
    """A definition with data that are there, where it can be told: a folder of files, or one table."""
    names = [name for root in roots for name in root.holds]
    folder = next((name for name in names if name.endswith("/")), None)
    if folder is not None and not any(name.endswith(FORMATS) for name in names):
        return YAML_EXAMPLE.replace("data: churn.csv\nby: region\n", f"data: {folder}*.csv\n")
    table = next((name for name in names if name.endswith(FORMATS)), "churn.csv")
    return YAML_EXAMPLE.replace("churn.csv", table)


def _ask_plan(service: Service, team: str, typed: str) -> str:
    now = service.clock()
    admitted = admit(_values(typed), team, service.settings, now=now)
    return service.plans.ask(admitted.submission, now, typed).id


def _submit(service: Service, holder: TokenHolder, typed: str, key: str) -> str:
    digest = sha256(_bytes(typed)).hexdigest()
    once = f"page-{key or secrets.token_hex(16)}-{digest}"
    values, now = _values(typed), service.clock()
    admitted = admit(values, holder.team, service.settings, key=once, digest=digest, now=now)
    run = service.submit(admitted, holder.name)
    service.wake()
    return run.id


def _values(typed: str) -> Mapping[str, object]:
    return parsed(_bytes(typed), is_json=False)  # what is JSON is YAML


def _bytes(typed: str) -> bytes:
    return typed.encode("utf-8", "replace")


def _typed(plan: AskedPlan, settings: ServiceSettings) -> str:
    """The definition of a plan as it was typed; of one that a program has sent, without what the server has added."""
    if plan.typed is not None:
        return plan.typed
    submitted = {name: value for name, value in plan.definition.items() if name != "mlflow"}
    return dump_yaml(settings.names(plan.team).document(submitted))


def _facts(result: Json, asks_slots: bool) -> list[tuple[str, str]]:
    """A plan's figures as people read them."""
    positive = result["positive"]
    slots = f"{result['slots']:,}" if asks_slots else f"up to {result['slots']:,}, by the team's share"
    class_text = "" if positive is None else f" (positive class {positive!r})"
    return [
        ("Customers", f"{result['customers']:,}"),
        ("Studies", f"{result['studies']:,}"),
        ("Trials", f"{result['trials']:,}"),
        ("Task", f"{result['task'] or 'objective'}{class_text}"),
        ("Metric", better_text(result["metric"], result["mode"])),
        ("Search algorithm", str(result["algorithm"])),
        ("Scheduler", str(result["scheduler"])),
        ("Placement", str(result["placement"])),
        ("Slots", slots),
        ("Fits", f"at most {result['fits']:,}"),
    ]


def _roots(settings: ServiceSettings, team: str) -> list[DataRoot]:
    """What a team may read, as its definitions name it."""
    own = [Path(place).absolute() for place in (settings.storage, str(settings.work)) if not is_uri(place)]
    return [DataRoot(mask(root)) if is_uri(root) else _folder(Path(root), own) for root in settings.roots(team)]


def _folder(root: Path, own: Sequence[Path]) -> DataRoot:
    """own: folders that are the server's."""
    try:
        with os.scandir(root) as entries:
            names = sorted(
                f"{entry.name}{'/' if entry.is_dir() else ''}"
                for entry in islice(entries, MOST_LOOKED_AT)
                if not entry.name.startswith(".") and not any(each.is_relative_to(entry.path) for each in own)
            )
    except OSError:
        names = []
    return DataRoot(root.name or str(root), names[:MOST_NAMES], len(names) > MOST_NAMES)
