"""The page of one run: where it stands, its leaderboard, failures and pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Query
from starlette.responses import FileResponse, Response

from tuning.basics.wording import amount, better_text, duration
from tuning.definition.definition import Definition
from tuning.errors import MissingError, QuotaError
from tuning.records.columns import FigureRow
from tuning.records.figures import shown_in
from tuning.runs.report.tiles import tone_of
from tuning.service.states import OPEN, WORKING
from tuning.service.views.tables import RunTables, Status
from tuning.service.web.auth import ServiceOf
from tuning.service.web.definitions import as_yaml
from tuning.service.web.messages import LeaderboardMessage, RunMessage
from tuning.service.web.pages.rendering import Render, fitting, short
from tuning.service.web.routes.results import ShownHere, leaderboard_message, shown_tables
from tuning.service.web.routes.runs import TeamRun, show_run
from tuning.storage.names import mask

router = APIRouter(include_in_schema=False)
ROWS = 50  # of a page of the leaderboard
MOST_DEFINITION = 10_000  # characters
_FIRST = ("customer", "status", "verdict", "test_score", "gain")  # what a narrow window shows
COLUMNS = sorted(
    (each for each in shown_in("report") if not each.long),
    key=lambda each: _FIRST.index(each.name) if each.name in _FIRST else len(_FIRST),
)
_PICTURE = re.compile(r"picture-\d+\.svg")

ShownRun = Annotated[RunMessage, Depends(show_run)]


async def _shown_or_why(found: TeamRun, service: ServiceOf) -> tuple[RunTables | None, str]:
    """Return a run's tables, or why there are none."""
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
    run: ShownRun,
    service: ServiceOf,
    render: Render,
    looked: Annotated[tuple[RunTables | None, str], Depends(_shown_or_why)],
    sort: Annotated[str, Query(max_length=64)] = "customer",
    search: Annotated[str, Query(max_length=255)] = "",
    status: Annotated[Status, Query()] = "",
    start: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """Show one run."""
    shown, why_not = looked
    board = None if shown is None else leaderboard_message(shown, sort, search, status, start, ROWS)
    asked = {"sort": sort, "search": search, "status": status, "start": start}
    return render(
        "run.html",
        run=run,
        live=run.state in OPEN,
        seen=max((event.id for event in service.runs.events(run.id) if event.state is run.state), default=0),
        trials=(run.definition or {}).get("trials", Definition.model_fields["trials"].default),
        definition=_definition(run.definition or {}),
        tables=None if shown is None else shown.summary,
        no_tables=why_not,
        board=None if board is None else _board(board, f"/runs/{run.id}", asked),
        age=duration(max(0.0, service.clock() - shown.written)) if shown and run.state in WORKING else "",
        experiment=_experiment(run, service.settings.mlflow),
    )


@router.get("/runs/{run}/pictures/{name}")
def picture(shown: ShownHere, name: str) -> Response:
    """Return a picture of all customers."""
    file = shown.folder / name
    if not _PICTURE.fullmatch(name) or not file.is_file():
        raise HTTPException(404)
    return FileResponse(
        file,
        media_type="image/svg+xml",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )


def _definition(definition: Mapping[str, object]) -> str:
    """Return a definition as it was submitted; of a very long one its beginning."""
    text = as_yaml(definition)
    if len(text) <= MOST_DEFINITION:
        return text
    return f"{text[:MOST_DEFINITION]}\n… ({amount(len(text), 'character')}; the API has all)"


def _experiment(run: RunMessage, mlflow: str | None) -> str:
    """Return the address of the run's experiment; empty where MLflow has no server."""
    if mlflow is None or not mlflow.startswith(("http://", "https://")):
        return ""
    return f"{mask(mlflow).rstrip('/')}/#/experiments?{urlencode({'experimentSearchFilter': f'{run.team}/{run.name}'})}"


def _board(page: LeaderboardMessage, address: str, asked: Mapping[str, object]) -> Mapping[str, object]:
    """Return a page of a leaderboard as its template shows it. asked: parameters of the page's address."""
    rows = fitting((str(row["customer"]), _cells(row), tone_of(row["status"], row["verdict"])) for row in page.rows)
    start = int(str(asked["start"]))
    last = start + len(rows)

    def there(**changes: object) -> str:
        kept = {name: value for name, value in {**asked, **changes}.items() if value not in ("", 0)}
        return f"{address}?{urlencode(kept)}#leaderboard"

    what = f"customers found of {page.customers:,}" if asked["search"] or asked["status"] else "customers"
    metric = f"; {better_text(str(page.rows[0]['metric']), str(page.rows[0]['mode']))}" if rows else ""
    return {
        **asked,
        "caption": f"{start + 1:,} to {last:,} of {page.found:,} {what}{metric}" if rows else f"0 {what}",
        "columns": [(each.name, each.is_number, there(sort=each.name, start=0)) for each in COLUMNS],
        "rows": rows,
        "before": there(start=max(0, start - ROWS)) if start else "",
        "after": there(start=last) if last < page.found else "",
        "statuses": get_args(Status)[1:],
    }


def _cells(row: FigureRow) -> Sequence[str]:
    """Return what a line of the leaderboard shows; the reason is last."""
    reason = row["reason"]
    return [*(short(each.text(row)) for each in COLUMNS), short(reason["text"] if isinstance(reason, Mapping) else "")]
