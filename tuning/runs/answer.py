"""The answer of a run in its first sentences, the same wherever it is shown, for whoever knows nothing of tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuning.basics.wording import amount, gain_text, params_text, score_text, value_text
from tuning.records.figures import FigureRow
from tuning.records.gains import is_error, user_metric
from tuning.records.user_scores import metric_text
from tuning.runs.typical import SURE, Typical

if TYPE_CHECKING:
    from tuning.runs.results import RunResult
    from tuning.runs.run_counts import RunCounts


def answer(result: RunResult, counts: RunCounts) -> list[str]:
    """How many customers have a model, how much better these are than knowing nothing and than the baseline on rows
    that they have not seen, how sure that is, and what it means."""
    awaited = min(result.unfinished, counts["without_model"]) if result.goes_on else 0
    lacking = counts["without_model"] - awaited
    without = f", {awaited:,} not finished yet" if awaited else ""
    without += f", {lacking:,} without (the reason is in their row)" if lacking else ""
    stopped = result.unfinished and not result.goes_on
    left = f"The run has not ended, {amount(result.unfinished, 'study')} left: " if stopped else ""
    board = result.board()
    if counts["customers"] == counts["succeeded"] == 1:
        return [left + of_one(board.first(1)[0], metric_text(board.metric, board.mode))]
    counted = f"{left}{result.outcome(counts)}{without}; {amount(counts['trials'], 'trial')}."
    told = of_many(counts["typical"], board.metric, board.mode) if counts["succeeded"] else ""
    return [counted, told] if told else [counted]


def of_many(typical: Typical, metric: str, mode: str) -> str:
    """The answer for customers. metric, mode: as recorded."""
    name = user_metric(metric)
    score = typical["test_score"]
    if score is None:
        best = value_text(typical["cv_score"])
        return f"The typical best score is {best} ({metric_text(metric, mode)})." if best else ""
    known = f"On rows that it has never seen, the typical model has {name} {value_text(score)}"
    nothing, over = typical["constant_test_score"], typical["gain_over_constant"]
    if nothing is None or over is None:
        known += f" ({metric_text(metric, mode)})"
    elif is_error(metric):
        known += f", {_share(over)} knowing nothing"
    else:
        known += f", where knowing nothing has {value_text(nothing)}"
    return " ".join(filter(None, [f"{known}.", _against_baseline(typical, metric), _meaning(typical)]))


def _share(gain: float) -> str:
    """Of an error, against another one. gain: in % of that."""
    return f"{gain_text(abs(gain), True)} {'below' if gain >= 0 else 'above'} that of"


def _against_baseline(typical: Typical, metric: str) -> str:
    gain, low, high = typical["gain"], typical["gain_low"], typical["gain_high"]
    if gain is None:
        return ""
    shown, least, most = (_gained(each, " %" if is_error(metric) else "") for each in (gain, low, high))
    interval = f" (19 times of 20 between {least} and {most})" if least and most else ""
    surely = f"surely better for {typical['surely_better']:,} of {amount(typical['compared'], 'customer')}"
    return (
        f"Against the baseline, the model tried first, the typical gain is {shown}{interval}: {surely}, surely worse "
        f"for {typical['surely_worse']:,}."
    )


def _gained(gain: float | None, unit: str) -> str:
    return "" if gain is None else f"{gain + 0.0:+.2g}{unit}"


def _meaning(typical: Typical) -> str:
    over, low, high = typical["gain_over_constant"], typical["gain_low"], typical["gain_high"]
    if over is not None and over <= 0:
        return "So these columns tell little of the target: find better ones before you tune longer."
    if typical["gain"] is None or low is None or high is None:
        return ""
    if low > 0:
        return "So tuning has paid: use these models."
    if high < 0:
        return "So the model tried first is the better one here: more rows may change that, more trials will not."
    if low == high == 0:
        return "So use these models; most of them are the one tried first."
    return "So use these models; that they are better than the one tried first is not sure."


def of_one(row: FigureRow, metric: str) -> str:
    """The answer for a single customer, or for an objective. metric: its name and better direction."""
    tried = "the only trial" if row["trials"] == 1 else f"the best of {row['trials']} trials"
    if row["test_score"] is None:
        values = params_text(row["params"]) if isinstance(row["params"], dict) else ""
        return f"{tried.capitalize()} scores {value_text(row['cv_score'])} ({metric}), with {values}."
    name, _, direction = metric.partition(", ")
    has = score_text(row["test_score"], row.get("test_error"))
    known = f"The model, {row['model']}, has {name} {has} on rows that it has never seen ({direction})"
    nothing = value_text(row.get("constant_test_score"))
    known += f", where knowing nothing has {nothing}." if nothing else "."
    first = value_text(row["baseline_test_score"])
    if not first:
        return known
    return f"{known} The baseline, {row['baseline']}, which was tried first, has {first}: {_difference(row)}."


def _difference(row: FigureRow) -> str:
    """What the model's gain means. Of the baseline itself it is 0, without an error."""
    gain, error = row["gain"], row.get("gain_error")
    if not isinstance(gain, float) or not gain:
        return "both are the same"
    better = "better" if gain > 0 else "worse"
    if not isinstance(error, float):
        return f"the model is {better}, and how surely is not known"
    apart = abs(float(str(row["test_score"])) - float(str(row["baseline_test_score"])))
    return f"the model is surely {better}" if apart > SURE * error else f"the model is {better}, which may be chance"
