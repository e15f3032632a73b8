"""The page of one customer of a run: scores, hyperparameters, learning curves and trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from tuning.basics.documents import Json
from tuning.basics.wording import amount, params_text, setting_text, value_text
from tuning.records.figures import shown_in
from tuning.records.schema import OK
from tuning.service.web.messages import CustomerMessage
from tuning.service.web.pages.one_run import COLUMNS, ShownRun
from tuning.service.web.pages.rendering import Render, fitting, short
from tuning.service.web.routes import results

router = APIRouter(include_in_schema=False)
MOST_TRIALS = 200
FACTS = [each for each in dict.fromkeys((*COLUMNS[1:], *shown_in("customer"))) if not each.long]
LEFT, RIGHT, TOP, BOTTOM = 110, 630, 15, 225  # of the area in which curves are drawn
MOST_CURVES = 100
MOST_STEPS = 100  # of a curve: more than that are not told apart on 520 pixels
SPREAD = 0.95  # of the scores are on the scale, so that one diverging trial does not flatten the others

TrialRow = Mapping[str, object]


@router.get("/runs/{run}/customer")
def customer_page(
    run: ShownRun, customer: Annotated[CustomerMessage, Depends(results.customer)], render: Render
) -> Response:
    """Show one customer of a run."""
    row, trials = customer.row, customer.trials
    ended = next((each for each in customer.studies if each["trial"] is not None), None)
    winner = None if ended is None else (ended["study"], ended["trial"])
    return render(
        "customer.html",
        run=run,
        customer=row,
        facts=[(each.name, short(text)) for each in FACTS if (text := each.text(row))],
        params=fitting((name, setting_text(value)) for name, value in _mapping(row["params"]).items()),
        notes=fitting(each["text"] for each in _list(row["notes"])),
        has_model=row["status"] == OK,
        curves=_curves(trials or [], winner, str(row["metric"])),
        trials=None if trials is None else fitting(_trial(each, winner) for each in trials[:MOST_TRIALS]),
        all_trials=len(trials or ()),
    )


def _trial(trial: TrialRow, winner: tuple[object, object] | None) -> TrialRow:
    """Return what a line about a trial shows."""
    params = params_text({name: value for name, value in _mapping(trial["config"]).items() if name != "model"})
    return {
        **{name: trial[name] for name in ("trial", "state", "family")},
        **{name: value_text(trial[name]) for name in ("score", "seconds")},
        "params": short(params),
        "reason": short(_mapping(trial["reason"]).get("text")),
        "winner": winner == (trial["study"], trial["trial"]),
    }


def _curves(trials: Sequence[TrialRow], winner: tuple[object, object] | None, metric: str) -> TrialRow | None:
    """Return the learning curves as the points of lines, the winner's last so that it is on top; None without any."""
    curves = [(trial, steps) for trial in trials if len(steps := _steps(trial)) > 1][:MOST_CURVES]
    if not curves:
        return None
    curves.sort(key=lambda curve: winner == (curve[0]["study"], curve[0]["trial"]))
    scores = sorted(score for _, steps in curves for _, score in steps)
    cut = int(len(scores) * (1 - SPREAD) / 2)
    low, high = scores[cut], scores[len(scores) - 1 - cut]
    high = high if high > low else low + (abs(low) or 1.0)
    first = min(steps[0][0] for _, steps in curves)
    last = max(steps[-1][0] for _, steps in curves)

    def placed(step: int, score: float) -> str:
        x = LEFT + (RIGHT - LEFT) * (step - first) / max(1, last - first)
        y = BOTTOM - (BOTTOM - TOP) * min(1.0, max(0.0, (score - low) / (high - low)))
        return f"{x:.1f},{y:.1f}"

    lines = [
        {
            "points": " ".join(placed(*step) for step in steps),
            "winner": winner == (trial["study"], trial["trial"]),
            "title": f"trial {trial['trial']} ({trial['family']}): {value_text(steps[-1][1])}",
        }
        for trial, steps in curves
    ]
    return {
        "label": f"{metric} by step of {amount(len(lines), 'trial')}",
        "caption": f"{metric} after each step. The thick line is the winner's; a score off the scale is at its edge.",
        "lines": lines,
        "top": value_text(high),
        "bottom": value_text(low),
        "first": first,
        "last": last,
    }


def _steps(trial: TrialRow) -> list[tuple[int, float]]:
    """Return steps with their scores, of many some evenly apart, the last among them."""
    found = [(each["step"], each["score"]) for each in _list(trial["steps"])]
    finite = [(step, score) for step, score in found if score is not None and math.isfinite(score)]
    apart = math.ceil(len(finite) / MOST_STEPS) or 1
    return finite[::-1][::apart][::-1]


def _mapping(value: object) -> TrialRow:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Json]:
    return value if isinstance(value, list) else []
