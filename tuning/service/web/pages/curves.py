"""Learning curves as the points of lines, for a picture without a script."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuning.basics.wording import amount, value_text

LEFT, RIGHT, TOP, BOTTOM = 110, 630, 15, 225  # of the area that is drawn in
MOST = 100  # curves
MOST_STEPS = 100  # of a curve: more than that are not told apart on 520 pixels
SPREAD = 0.95  # of the scores are on the scale, so that one diverging trial does not flatten the others


@dataclass(frozen=True)
class CurvePicture:
    """What the template draws: lines with their points, and the ends of both scales."""

    label: str
    caption: str
    lines: Sequence[Mapping[str, object]]
    top: str
    bottom: str
    first: int
    last: int


def drawn_curves(
    trials: Sequence[Mapping[str, object]], winner: tuple[object, object] | None, metric: str
) -> CurvePicture | None:
    """The curves of trials with two steps or more, the winner's last so that it is on top; None without any."""
    curves = [(trial, steps) for trial in trials if len(steps := _steps(trial)) > 1]
    if not curves:
        return None
    curves = curves[:MOST]
    curves.sort(key=lambda curve: winner == (curve[0]["study"], curve[0]["trial"]))
    scores = sorted(score for _, steps in curves for _, score in steps)
    cut = int(len(scores) * (1 - SPREAD) / 2)
    low, high = scores[cut], scores[len(scores) - 1 - cut]
    high = high if high > low else low + (abs(low) or 1.0)
    first = min(steps[0][0] for _, steps in curves)
    last = max(steps[-1][0] for _, steps in curves)

    def points(steps: Sequence[tuple[int, float]]) -> str:
        placed = (
            (
                LEFT + (RIGHT - LEFT) * (step - first) / max(1, last - first),
                BOTTOM - (BOTTOM - TOP) * min(1.0, max(0.0, (score - low) / (high - low))),
            )
            for step, score in steps
        )
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)

    lines = [
        {
            "points": points(steps),
            "winner": winner == (trial["study"], trial["trial"]),
            "title": f"trial {trial['trial']} ({trial['family']}): {value_text(steps[-1][1])}",
        }
        for trial, steps in curves
    ]
    return CurvePicture(
        label=f"{metric} by step of {amount(len(lines), 'trial')}",
        caption=f"{metric} after each step. The thick line is the winner's; scores beyond the scale are at its edge.",
        lines=lines,
        top=value_text(high),
        bottom=value_text(low),
        first=first,
        last=last,
    )


def _steps(trial: Mapping[str, object]) -> list[tuple[int, float]]:
    """Steps with their scores, of many some evenly apart, the last among them."""
    steps = trial["steps"]
    found = [(each["step"], each["score"]) for each in steps] if isinstance(steps, list) else []
    finite = [(step, score) for step, score in found if score is not None and math.isfinite(score)]
    apart = math.ceil(len(finite) / MOST_STEPS) or 1
    return finite[::-1][::apart][::-1]
