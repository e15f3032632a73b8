"""What a run, or one customer of it, has come to, as a few tiles: one figure each, with what it is to be compared with.

The report, its customers' reports and the pages of the service show the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuning.basics.wording import amount, duration, gain_text, params_text, score_text, shorten, value_text
from tuning.definition.baselines import GivenBaseline, baseline_name
from tuning.records.columns import FigureRow
from tuning.records.gains import is_error
from tuning.records.schema import NO_MODEL, QUARANTINED
from tuning.reporting.html import Tile
from tuning.runs.plan_file import frozen_definition
from tuning.runs.verdicts import ToUse

if TYPE_CHECKING:
    from tuning.runs.results import RunResult
    from tuning.runs.run_counts import RunCounts

SHOWN_AS = {
    ToUse.MODEL: "use",
    ToUse.BASELINE: "keep baseline",
    ToUse.CONSTANT: "keep constant",
    ToUse.POOL: "pool",
    ToUse.UNDECIDED: "undecided",
}
MOST_PARAMS = 120  # characters


def run_tiles(result: RunResult, counts: RunCounts) -> list[Tile]:
    """Return the tiles of a run. counts: its `summary`."""
    board = result.board()
    if len(board) == counts["succeeded"] == 1:
        own = customer_tiles(board.ends(1)[0], board.metric, result.baseline)
        return [*own, _time(counts)]
    typical, metric = counts["typical"], board.metric
    target = frozen_definition(result.directory, result.term).target
    title = f"typical {metric}{f' of {shorten(target, 40)}' if target else ''}"
    tiles = [_customers(result, counts)]
    score, over = typical["test_score"], typical["gain_over_constant"]
    if score is None:
        best = [Tile(title, value_text(typical["cv_score"]))] if typical["cv_score"] is not None else []
        return [*tiles, *best, _time(counts)]
    nothing = _against_a_constant(typical["constant_test_score"], over, metric)
    tiles.append(Tile(title, value_text(score), nothing or "on rows that no model has seen"))
    if typical["gain"] is not None:
        low, high = (_signed(typical[name], metric) for name in ("gain_low", "gain_high"))
        interval = f"95 % interval: {low} to {high}" if low and high else "too few customers for an interval"
        title, about = "typical gain over the baseline", f"{interval}; {counts['baseline']}"
        tiles.append(Tile(title, _signed(typical["gain"], metric), about, _tone(typical["gain_low"])))
    return [*tiles, _time(counts)]


def customer_tiles(row: FigureRow, metric: str, baseline: GivenBaseline = None) -> list[Tile]:
    """Return the tiles of one customer, or of an objective. row: of the leaderboard. baseline: of the definition."""
    tiles = []
    if verdict := row["verdict"]:
        rows = f"{row['test_rows']:,} hold-out rows, {row['rows']:,} in all"
        bad = verdict in (ToUse.BASELINE, ToUse.CONSTANT)
        tiles.append(Tile("verdict", SHOWN_AS[ToUse(str(verdict))], rows, "bad" if bad else ""))
    if row["test_score"] is None:
        best = value_text(row["cv_score"])
        values = shorten(params_text(row["params"]), MOST_PARAMS) if isinstance(row["params"], Mapping) else ""
        return [*tiles, *([Tile(f"best {metric}", best, values)] if best else [])]
    nothing = value_text(row.get("constant_test_score"))
    about = f"a constant guess: {nothing}" if nothing else "on rows that it has not seen"
    tiles.append(Tile(metric, score_text(row["test_score"], row.get("test_error")), about))
    if isinstance(gain := row["gain"], float) and math.isfinite(gain):
        error = row.get("gain_error")
        both = [gain - 2 * error, gain + 2 * error] if isinstance(error, float) and math.isfinite(error) else []
        interval = f"about {_signed(both[0], metric)} to {_signed(both[1], metric)}; " if both else ""
        what = baseline_name(baseline)
        first = f"{what}: {value_text(row['baseline_test_score'])}"
        tone = _tone(both[0], both[1]) if both else ""
        tiles.append(Tile("gain over the baseline", _signed(gain, metric), f"{interval}{first}", tone))
    return tiles


def verdicts_text(counts: Mapping[str, int]) -> str:
    """Return how many customers have which verdict. counts: of `RunCounts`."""
    return " · ".join(f"{SHOWN_AS[each]} {counts[each]:,}" for each in ToUse if counts.get(each))


def tone_of(status: object, verdict: object) -> str:
    """Return how a customer's row is coloured: without a model, or with one no better than something simpler."""
    if status in (NO_MODEL, QUARANTINED):
        return "bad"
    return "worse" if verdict in (ToUse.BASELINE, ToUse.CONSTANT) else ""


def _customers(result: RunResult, counts: RunCounts) -> Tile:
    parts = [text] if (text := verdicts_text(counts["verdicts"])) else []
    if contradicted := counts["contradicted"]:
        parts.append(f"{contradicted:,} contradicted by the hold-out")
    if result.unfinished:
        parts.append(f"{'' if result.goes_on else 'not ended: '}{amount(result.unfinished, 'study')} left")
    stopped = bool(result.unfinished) and not result.goes_on
    bad = stopped or bool(contradicted) or not (counts["succeeded"] or result.goes_on)
    value = f"{counts['succeeded']:,} of {counts['customers']:,}"
    return Tile("customers with a model", value, " · ".join(parts), "bad" if bad else "")


def _time(counts: RunCounts) -> Tile:
    seconds = counts["fit_seconds"]
    cores = f"{seconds:,.0f} core-seconds" if seconds < 360 else f"{seconds / 3600:,.1f} core-hours"
    parts = [f"{cores} of training"] if seconds else []
    return Tile("time", duration(counts["wall_seconds"]), ", ".join([*parts, amount(counts["trials"], "trial")]))


def _against_a_constant(nothing: float | None, over: float | None, metric: str) -> str:
    """Return how good a constant guess is. over: the gain over it."""
    if nothing is None or over is None:
        return ""
    if not is_error(metric):
        return f"a constant guess: {value_text(nothing)}"
    return f"{gain_text(abs(over), True)} {'less' if over >= 0 else 'more'} error than a constant guess"


def _signed(gain: float | None, metric: str) -> str:
    """Return a gain with its sign and unit, rounded to two digits; empty for None."""
    return "" if gain is None else f"{gain + 0.0:+.2g}{' %' if is_error(metric) else ''}"


def _tone(low: float | None, high: float | None = None) -> str:
    """Return how a gain is to be shown. low, high: ends of its interval."""
    if low is not None and low > 0:
        return "good"
    return "bad" if high is not None and high < 0 else ""
