"""How a page is made of a template, and what all pages show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import FileResponse, HTMLResponse, Response

from tuning.basics.wording import better_text, duration, shorten
from tuning.reporting.html import marked
from tuning.runs.report.tiles import verdicts_text
from tuning.service.database.tokens import Role, TokenHolder
from tuning.service.web.messages import ProgressMessage
from tuning.service.web.problems import ProblemMessage

FOLDER = Path(__file__).parent.parent
PART_BYTES = 100_000  # of a table: a page has 300 KB at most
MOST_TEXT = 300  # characters of a cell
STATIC = {"service.css": "text/css", "service.js": "text/javascript"}

router = APIRouter(include_in_schema=False)
_Row = TypeVar("_Row")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"moment": moment, "marked": marked, "short": short, "better": better_text}
    made.filters |= {"left": time_left, "verdicts": verdicts_of}
    return made


def moment(at: datetime) -> Markup:
    """Return a time as people and programs read it, UTC."""
    return Markup('<time datetime="{}">{:%Y-%m-%d %H:%M}</time>').format(at.isoformat(timespec="seconds"), at)


def short(text: object) -> str:
    """Return a text that a cell has room for; nothing for None."""
    return "" if text is None else shorten(str(text), MOST_TEXT)


def time_left(progress: ProgressMessage) -> str:
    """Return the share of the work that is done, and the time left where it is known."""
    left = "" if progress.seconds_left is None else f", {duration(progress.seconds_left)} left"
    return f"{progress.share:.0%}{left}"


def verdicts_of(outcome: Mapping[str, object] | None) -> str:
    """Return how many customers of a run that has ended have which verdict. outcome: what it said at its end."""
    found = (outcome or {}).get("verdicts")
    return verdicts_text(found) if isinstance(found, Mapping) else ""


def fitting(rows: Iterable[_Row]) -> list[_Row]:
    """Return the first rows, as many as a page has room for; one at least, where there is any."""
    found, room = list[_Row](), PART_BYTES
    for row in rows:
        room -= len(escape(str(row)).encode())
        if room < 0 and found:
            break
        found.append(row)
    return found


class Renderer:
    """Makes pages for who asks; without a holder, those before the login.

    asked: the parameters of the page's address, without empty ones.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._holder: TokenHolder | None = getattr(request.state, "holder", None)
        self.asked = {name: value for name, value in request.query_params.items() if value}

    def __call__(self, template: str, status: int = 200, **values: object) -> Response:
        """values: of the template; `problem` is a sentence above the content."""
        holder = self._holder
        shared = {
            "path": self._request.url.path,
            "asked": self.asked,
            "holder": holder,
            "may_submit": holder is not None and holder.role.includes(Role.SUBMIT),
            "may_delete": holder is not None and holder.role.includes(Role.ADMIN),
            "problem": "",
        }
        return HTMLResponse(_environment().get_template(template).render({**shared, **values}), status)


Render = Annotated[Renderer, Depends(Renderer)]


def problem_page(request: Request, message: ProblemMessage) -> Response:
    """Return why there is no page, with a way back."""
    run = request.path_params.get("run") if message.status != HTTPStatus.NOT_FOUND else None
    return Renderer(request)("problem.html", message.status, message=message, run=run)


@router.get("/static/{name}")
def static_file(name: str) -> Response:
    """Return the style or the script of all pages."""
    if name not in STATIC:
        raise HTTPException(404)
    return FileResponse(FOLDER / "static" / name, media_type=STATIC[name], headers={"Cache-Control": "max-age=300"})
