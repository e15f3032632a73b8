"""The answer of a run in its first sentences, the same wherever it is shown, for whoever knows nothing of tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuning.basics.wording import (
    amount,
    better_direction,
    better_text,
    gain_text,
    params_text,
    score_text,
    some_names,
    value_text,
)
from tuning.definition.baselines import GivenBaseline, baseline_name, column_of
from tuning.records.columns import FigureRow
from tuning.records.gains import LEAST_OF_CLASS, is_error
from tuning.runs.typical import Typical
from tuning.runs.verdicts import LEAST_ROWS, ToUse

if TYPE_CHECKING:
    from tuning.runs.run_counts import RunCounts
    from tuning.runs.standings import Standings

CONSTANT = "a constant guess"
TOO_FEW = f"fewer than {LEAST_ROWS}, or than {LEAST_OF_CLASS} of a class"


def to_use(counts: RunCounts, standings: Standings, baseline: GivenBaseline) -> str:
    """How many customers have which verdict, and who is to use something else; empty where nobody has one."""
    found, few = counts["verdicts"], counts["too_few_rows"]
    if not any(found.values()):
        return ""
    models, undecided, own = (
        found[ToUse.MODEL],
        found[ToUse.UNDECIDED],
        column_of(baseline) is not None,
    )
    what, rival = baseline_name(baseline), _rival(baseline)
    they = "it is" if models == 1 else "they are"
    told = [f"Use {amount(models, 'model')}: {they} surely better than {rival}."]
    if not models:
        told = [] if few == sum(found.values()) - found[ToUse.POOL] else [f"No model is surely better than {rival}."]
    others = {
        ToUse.BASELINE: (f"{what} {'are' if own else 'is'} better", "Keep those." if own else "`trials: 1` fits it."),
        ToUse.CONSTANT: (f"{CONSTANT} is as good or better", "More rows or other columns may help."),
    }
    for verdict, (better, advice) in others.items():
        if names := standings.having(verdict):
            told.append(f"For {amount(len(names), 'customer')} {better}: {some_names(names)}. {advice}")
    if found[ToUse.POOL]:
        told.append(f"For {amount(found[ToUse.POOL], 'customer')} the pool answers.")
    if undecided:
        why = {f"the hold-out rows are too few ({TOO_FEW})": few, "the difference may be chance": undecided - few}
        parts = [f"{'' if count == undecided else f'for {count:,} '}{each}" for each, count in why.items() if count]
        are = "is" if undecided == 1 else "are"
        told.append(f"{amount(undecided, 'customer')} {are} undecided: {', '.join(parts)}.")
    return " ".join(told)


def _rival(baseline: GivenBaseline) -> str:
    """What a model has to be better than."""
    return CONSTANT if column_of(baseline) is None else baseline_name(baseline)


def of_many(typical: Typical, metric: str, mode: str, baseline: GivenBaseline = None) -> str:
    """How good the typical model is. metric, mode: of the run. baseline: as the definition has it."""
    score = typical["test_score"]
    if score is None:
        best = value_text(typical["cv_score"])
        return f"The typical best score is {best} ({better_text(metric, mode)})." if best else ""
    known = f"On rows that no model has seen, the model of the median customer has {metric} {value_text(score)}"
    nothing, over = typical["constant_test_score"], typical["gain_over_constant"]
    if nothing is None or over is None:
        known += f" ({better_text(metric, mode)})"
    elif is_error(metric):
        known += f", {_less(over)} than a constant guess"
    else:
        known += f"; a constant guess has {value_text(nothing)}"
    return " ".join(filter(None, [f"{known}.", _against_baseline(typical, metric, baseline)]))


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
    return f"Compared with the baseline, {baseline_name(baseline)}, its gain is {gain}{unit}{interval}."


def of_one(row: FigureRow, metric: str, mode: str, baseline: GivenBaseline = None) -> str:
    """Return the answer for a single customer, or for an objective. baseline: as the definition has it."""
    if not row["trials"] and row["test_score"] is None:
        return f"The model, {row['model']}, has a known configuration, fitted on all rows: none is left to score it."
    use = _use_of_one(row, baseline)
    tried = "the only trial" if row["trials"] == 1 else f"the best of {row['trials']} trials"
    if row["test_score"] is None:
        stages = row["stages"]
        end = f" at the end of a schedule of {amount(stages, 'stage')}" if isinstance(stages, int) else ""
        values = params_text(row["params"]) if isinstance(row["params"], dict) else ""
        score = f"{value_text(row['cv_score'])} ({better_text(metric, mode)})"
        return f"{use}{tried.capitalize()} scores {score}, with {values}{end}."
    has = score_text(row["test_score"], row.get("test_error"))
    better = better_direction(mode)
    known = f"The model, {row['model']}, has {metric} {has} on rows that it has not seen ({better})"
    nothing = value_text(row.get("constant_test_score"))
    known += f"; a constant guess has {nothing}." if nothing else "."
    first = value_text(row["baseline_test_score"])
    what = f"{row['baseline']}, {baseline_name(None)}" if baseline is None else baseline_name(baseline)
    compared = f" The baseline, {what}, has {first}." if first else ""
    return f"{use}{known}{compared}"


def _use_of_one(row: FigureRow, baseline: GivenBaseline) -> str:
    """Return what the verdict means, followed by a blank; an empty text without a verdict."""
    if row["verdict"] == ToUse.UNDECIDED:
        rare = "" if row["rare_rows"] is None else f", {row['rare_rows']} of the rarest class,"
        return f"Undecided: {row['test_rows']} hold-out rows{rare} cannot tell the model from {_rival(baseline)}. "
    return {
        ToUse.MODEL.value: f"Use this model: it is surely better than {_rival(baseline)}. ",
        ToUse.BASELINE.value: f"Keep the baseline, {baseline_name(baseline)}: surely better than the model. ",
        ToUse.CONSTANT.value: f"{CONSTANT.capitalize()} is as good or better: more rows may help. ",
    }.get(str(row["verdict"]), "")
