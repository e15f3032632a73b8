"""The answer of a run in its first sentences, the same wherever it is shown, for whoever knows nothing of tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuning.basics.wording import amount, gain_text, params_text, score_text, value_text
from tuning.definition.baselines import GivenBaseline, baseline_name, column_of
from tuning.records.columns import FigureRow
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
    pooled = counts["pooled"]
    without = f", {pooled:,} the pool's answers (the reason is in their row)" if pooled else ""
    without += f", {awaited:,} not finished yet" if awaited else ""
    without += f", {lacking:,} without (the reason is in their row)" if lacking else ""
    stopped = result.unfinished and not result.goes_on
    left = f"The run has not ended, {amount(result.unfinished, 'study')} left: " if stopped else ""
    board = result.board()
    if counts["customers"] == counts["succeeded"] == 1:
        return [left + of_one(board.first(1)[0], metric_text(board.metric, board.mode), result.baseline)]
    counted = f"{left}{result.outcome(counts)}{without}; {amount(counts['trials'], 'trial')}."
    pool = counts["pool_members"] > 0
    told = of_many(counts["typical"], board.metric, board.mode, result.baseline, pool) if counts["succeeded"] else ""
    return [counted, told] if told else [counted]


def of_many(typical: Typical, metric: str, mode: str, baseline: GivenBaseline = None, pool: bool = False) -> str:
    """The answer for customers. metric, mode: as recorded. baseline: as the definition has it. pool: whether it is a
    member of models."""
    name = user_metric(metric)
    score = typical["test_score"]
    if score is None:
        best = value_text(typical["cv_score"])
        return f"The typical best score is {best} ({metric_text(metric, mode)})." if best else ""
    known = f"On rows that no model has seen, the model of the median customer has {name} {value_text(score)}"
    nothing, over = typical["constant_test_score"], typical["gain_over_constant"]
    if nothing is None or over is None:
        known += f" ({metric_text(metric, mode)})"
    elif is_error(metric):
        known += f", {_less(over)} than a constant guess"
    else:
        known += f"; a constant guess has {value_text(nothing)}"
    return " ".join(
        filter(None, [f"{known}.", _against_baseline(typical, metric, baseline), _meaning(typical, baseline, pool)])
    )


def _less(gain: float) -> str:
    """gain: in % of another error."""
    return f"{gain_text(abs(gain), True)} {'less' if gain >= 0 else 'more'} error"


def _against_baseline(typical: Typical, metric: str, baseline: GivenBaseline) -> str:
    if typical["gain"] is None:
        return ""
    unit = " % of the error" if is_error(metric) else ""
    gain, low, high = (
        "" if each is None else f"{each + 0.0:+.2g}"
        for each in (typical["gain"], typical["gain_low"], typical["gain_high"])
    )
    interval = f" (95 % confidence interval: {low} to {high})" if low and high else ""
    better, worse = typical["surely_better"], typical["surely_worse"]
    compared = f"Compared with the baseline, {baseline_name(baseline)}, its gain is {gain}{unit}{interval}"
    undecided = typical["compared"] - better - worse
    customers = f"customer by customer {better:,} surely better, {worse:,} surely worse, {undecided:,} undecided"
    return f"{compared}; {customers}."


def _meaning(typical: Typical, baseline: GivenBaseline, pool: bool) -> str:
    over, low, high = typical["gain_over_constant"], typical["gain_low"], typical["gain_high"]
    if over is not None and over <= 0:
        return "So these columns tell little of the target: find better ones before you tune longer."
    if typical["gain"] is None:
        return ""
    few, better, worse, unsure = _meanings(baseline, pool)
    if low is None or high is None:
        return few
    return better if low > 0 else worse if high < 0 else unsure


def _meanings(baseline: GivenBaseline, pool: bool) -> tuple[str, str, str, str]:
    """What is said of a few customers, and where the models are surely better, surely worse, or neither."""
    changes = "more rows may change that, more trials will not."
    if baseline is None:
        return (
            "So use these models; for so few customers it cannot be said whether tuning improved on the first one.",
            f"So use these models: {'tuning with the pool' if pool else 'tuning'} has paid.",
            f"So the first model tried is the better one here: {changes}",
            "So use these models; it is not proven that tuning improved on the first one.",
        )
    what = baseline_name(baseline)
    if column_of(baseline) is None:
        return (
            f"So use these models; for so few customers it cannot be said whether they are better than {what}.",
            f"So use these models: they are better than {what}.",
            f"So {what} is the better one here: {changes}",
            f"So use these models; it is not proven that they are better than {what}.",
        )
    return (
        f"For so few customers it cannot be said whether these models are better than {what}.",
        f"So use these models: they are better than {what}.",
        f"So keep {what}: {changes}",
        f"So keep whichever is easier to run: it is not proven that these models are better than {what}.",
    )


def of_one(row: FigureRow, metric: str, baseline: GivenBaseline = None) -> str:
    """The answer for a single customer, or for an objective.

    metric: its name and better direction. baseline: as the definition has it.
    """
    if not row["trials"] and row["test_score"] is None:
        return f"The model, {row['model']}, has a known configuration, fitted on all rows: none is left to score it."
    tried = "the only trial" if row["trials"] == 1 else f"the best of {row['trials']} trials"
    if row["test_score"] is None:
        values = params_text(row["params"]) if isinstance(row["params"], dict) else ""
        return f"{tried.capitalize()} scores {value_text(row['cv_score'])} ({metric}), with {values}."
    name, _, direction = metric.partition(", ")
    has = score_text(row["test_score"], row.get("test_error"))
    known = f"The model, {row['model']}, has {name} {has} on rows that it has not seen ({direction})"
    nothing = value_text(row.get("constant_test_score"))
    known += f"; a constant guess has {nothing}." if nothing else "."
    first = value_text(row["baseline_test_score"])
    if not first:
        return known
    what = f"{row['baseline']}, {baseline_name(None)}" if baseline is None else baseline_name(baseline)
    return f"{known} The baseline, {what}, has {first}: {_difference(row)}."


def _difference(row: FigureRow) -> str:
    """What the model's gain means. Of the baseline itself it is 0, without an error."""
    gain, error = row["gain"], row.get("gain_error")
    if not isinstance(gain, float) or not gain:
        return "no difference"
    better = "better" if gain > 0 else "worse"
    if not isinstance(error, float):
        return f"the model is {better}, and how surely is not known"
    sure = abs(gain) > SURE * error
    return f"the model is surely {better}" if sure else f"the model is {better}, which may be chance"
