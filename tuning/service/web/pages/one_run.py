"""The pages of one run: where it stands, its leaderboard, failures and pictures, and one customer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Query
from starlette.responses import FileResponse, Response

from search_spaces.yaml_text import dump_yaml
from tuning.basics.documents import Json
from tuning.basics.wording import amount, duration, params_text, setting_text, shorten, value_text
from tuning.definition.definition import Definition
from tuning.errors import MissingError, QuotaError
from tuning.records.columns import FigureRow
from tuning.records.figures import shown_in
from tuning.records.schema import OK
from tuning.service.database.runs import SubmittedRun
from tuning.service.settings import ServiceSettings
from tuning.service.states import OPEN, WORKING
from tuning.service.views.tables import Status
from tuning.service.views.views import ShownTables
from tuning.service.web.auth import ServiceOf
from tuning.service.web.pages.curves import drawn_curves
from tuning.service.web.pages.rendering import Render, fitting
from tuning.service.web.routes.results import ShownHere, shown_tables
from tuning.service.web.routes.runs import TeamRun
from tuning.service.web.run_messages import progress_of
from tuning.storage.names import mask

router = APIRouter(include_in_schema=False)
ROWS = 50  # of a page of the leaderboard
MOST_TRIALS = 200  # of a customer
MOST_TEXT = 300  # characters of a cell
MOST_FAILURES = 20  # reasons
MOST_DEFINITION = 10_000  # characters
COLUMNS = [each for each in shown_in("report") if not each.long]
FACTS = [each for each in dict.fromkeys((*COLUMNS[1:], *shown_in("customer"))) if not each.long]  # of a customer
_PICTURE = re.compile(r"picture-\d+\.svg")

SortColumn = Annotated[str, Query(max_length=64)]
SearchText = Annotated[str, Query(max_length=255)]


@dataclass(frozen=True)
class _Board:
    """A page of a leaderboard, as its template shows it."""

    sort: str
    search: str
    status: str
    caption: str
    columns: Sequence[Mapping[str, object]]
    rows: Sequence[Mapping[str, object]]
    before: str
    after: str
    statuses: Sequence[str] = get_args(Status)[1:]


async def _shown_or_why(found: TeamRun, service: ServiceOf) -> tuple[ShownTables | None, str]:
    """A run's tables, or why there are none."""
    if found.started is None:
        return None, "Nothing is recorded yet."
    try:
        return await shown_tables(found, service), ""
    except MissingError as error:
        return None, "Nothing is recorded yet." if found.state in WORKING else str(error)
    except QuotaError as error:
        return None, str(error)


@router.get("/runs/{run}")
def run_page(
    found: TeamRun,
    service: ServiceOf,
    render: Render,
    looked: Annotated[tuple[ShownTables | None, str], Depends(_shown_or_why)],
    sort: SortColumn = "customer",
    search: SearchText = "",
    status: Annotated[Status, Query()] = "",
    start: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """One run."""
    address = f"/runs/{found.id}"
    progress = progress_of(found) if found.state in WORKING else None
    shown, without = looked
    age = ""
    if shown is not None and found.state in WORKING:
        age = duration(max(0.0, service.clock() - shown.written))
    return render(
        "run.html",
        run={**_facts(found), "place": service.places().get(found.id), "progress": progress},
        live=found.state in OPEN,
        seen=max((event.id for event in service.runs.events(found.id) if event.state is found.state), default=0),
        trials=found.definition.get("trials", Definition.model_fields["trials"].default),
        definition=_definition(found, service.settings),
        tables=None if shown is None else _summary(shown.tables.summary),
        no_tables=without,
        board=None if shown is None else _board(shown, address, sort, search, status, start),
        age=age,
        links=_links(found, service.settings.mlflow),
    )


@router.get("/runs/{run}/customer")
def customer_page(
    found: TeamRun, shown: ShownHere, render: Render, id: Annotated[str, Query(max_length=4096)]
) -> Response:
    """One customer of a run."""
    customer = shown.tables.customer(id)
    trials, winner = customer["trials"], _winner(customer)
    kept = trials if isinstance(trials, list) else None
    return render(
        "customer.html",
        run=_facts(found),
        customer=customer,
        facts=[(each.name, shorten(text, MOST_TEXT)) for each in FACTS if (text := each.text(customer))],
        params=fitting((name, setting_text(value)) for name, value in _mapping(customer["params"]).items()),
        notes=fitting(map(str, notes if isinstance(notes := customer["notes"], list) else ())),
        links=_customer_links(found, id) if customer["status"] == OK else [],
        curves=drawn_curves(kept or [], winner, str(customer["metric"])),
        trials=None if kept is None else fitting(_trial(each, winner) for each in kept[:MOST_TRIALS]),
        all_trials=0 if kept is None else len(kept),
    )


@router.get("/runs/{run}/pictures/{name}")
def picture(shown: ShownHere, name: str) -> Response:
    """A picture of all customers."""
    file = shown.tables.folder / name
    if not _PICTURE.fullmatch(name) or not file.is_file():
        raise HTTPException(404)
    return FileResponse(
        file,
        media_type="image/svg+xml",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )


def _definition(run: SubmittedRun, settings: ServiceSettings) -> str:
    """As it was submitted, without what the server has added; of a very long one its beginning."""
    submitted = {name: value for name, value in run.definition.items() if name != "mlflow"}
    text = dump_yaml(settings.names(run.team).document(submitted))
    return (
        text
        if len(text) <= MOST_DEFINITION
        else f"{text[:MOST_DEFINITION]}\n… ({amount(len(text), 'character')}; the API has all)"
    )


def _facts(run: SubmittedRun) -> dict[str, object]:
    told = ("id", "name", "state", "reason", "submitted", "started", "ended", "slots", "slots_asked")
    return {name: getattr(run, name) for name in (*told, "schedule", "submitted_by")}


def _links(run: SubmittedRun, mlflow: str | None) -> list[Mapping[str, str]]:
    api = f"/api/v1/runs/{run.id}"
    reported = run.state not in WORKING and run.definition.get("report", True)
    links: list[Mapping[str, str]] = [
        *([{"href": f"{api}/report", "text": "Report"}] if reported else []),
        {"href": f"{api}/leaderboard?format=csv", "text": "Leaderboard as CSV"},
        {"href": f"{api}/leaderboard?format=parquet", "text": "as Parquet"},
    ]
    if mlflow is not None and mlflow.startswith(("http://", "https://")):
        wanted = urlencode({"experimentSearchFilter": f"{run.team}/{run.name}"})
        links.append({"href": f"{mask(mlflow).rstrip('/')}/#/experiments?{wanted}", "text": "MLflow"})
    return links


def _customer_links(run: SubmittedRun, customer: str) -> list[Mapping[str, str]]:
    """What the API has of a customer with a model."""
    api, asked = f"/api/v1/runs/{run.id}", urlencode({"id": customer})
    return [
        {"href": f"{api}/report?{asked}", "text": "Report (it is made now, which takes some seconds)"},
        *([{"href": f"{api}/model?{asked}", "text": "Model as ZIP"}] * bool(run.definition.get("save_models", True))),
    ]


def _summary(summary: Json) -> Mapping[str, object]:
    """Of what a page says of all customers, as much as it has room for."""
    failures = [
        {
            **each,
            "message": shorten(each["message"], MOST_TEXT),
            "examples": [shorten(name, 60) for name in each["examples"]],
        }
        for each in summary["failures"][:MOST_FAILURES]
    ]
    return {**summary, "failures": failures, "more_failures": max(0, len(summary["failures"]) - MOST_FAILURES)}


def _board(shown: ShownTables, address: str, sort: str, search: str, status: str, start: int) -> _Board:
    page = shown.tables.page(sort=sort, search=search, status=status, start=start, rows=ROWS)
    rows = fitting(_row(row, address) for row in page.rows)

    def there(**changes: object) -> str:
        asked = {"sort": sort, "search": search, "status": status, "start": start, **changes}
        kept = {name: value for name, value in asked.items() if value not in ("", 0)}
        return f"{address}?{urlencode(kept)}#leaderboard"

    last = start + len(rows)
    what = "customers" if not (search or status) else f"customers found of {page.customers:,}"
    counted = f"{start + 1:,} to {last:,} of {page.found:,} {what}" if page.rows else f"0 {what}"
    metric = (
        f"; {page.rows[0]['metric']}, {'larger' if page.rows[0]['mode'] == 'max' else 'smaller'} is better"
        if page.rows
        else ""
    )
    return _Board(
        sort=sort,
        search=search,
        status=status,
        caption=f"{counted}{metric}",
        columns=[
            {
                "name": each.name,
                "number": each.is_number,
                "href": there(sort=each.name, start=0),
                "direction": "other" if each.name == "customer" else "descending",
            }
            for each in COLUMNS
        ]
        + [{"name": "reason", "number": False, "href": "", "direction": "none"}],
        rows=rows,
        before=there(start=max(0, start - ROWS)) if start else "",
        after=there(start=last) if last < page.found else "",
    )


def _row(row: FigureRow, address: str) -> Mapping[str, object]:
    cells = [{"text": shorten(each.text(row), MOST_TEXT), "kind": "number" * each.is_number} for each in COLUMNS]
    cells.append({"text": shorten(str(row["reason"] or ""), MOST_TEXT), "kind": "text"})
    href = f"{address}/customer?{urlencode({'id': row['customer']})}"
    return {"cells": cells, "href": href, "title": row["customer"]}


def _winner(customer: Mapping[str, object]) -> tuple[object, object] | None:
    """The study and number of the trial that won."""
    studies = customer["studies"]
    ended = [each for each in studies if each["trial"] is not None] if isinstance(studies, list) else []
    return (ended[0]["study"], ended[0]["trial"]) if ended else None


def _trial(trial: Mapping[str, object], winner: tuple[object, object] | None) -> Mapping[str, object]:
    config = _mapping(trial["config"])
    params = params_text({name: value for name, value in config.items() if name != "model"})
    return {
        "number": trial["trial"],
        "state": trial["state"],
        "family": trial["family"],
        "score": value_text(trial["score"]),
        "seconds": value_text(trial["seconds"]),
        "params": shorten(params, MOST_TEXT),
        "reason": shorten(str(trial["reason"] or ""), MOST_TEXT),
        "winner": winner == (trial["study"], trial["trial"]),
    }


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
