"""What came of a run in sentences, for a terminal, a notebook and pages, the same wherever they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuning.basics.public import is_interactive
from tuning.basics.wording import (
    amount,
    better_direction,
    better_text,
    command,
    gain_text,
    params_text,
    score_text,
    size_text,
    value_text,
)
from tuning.definition.baselines import GivenBaseline, baseline_name
from tuning.records.columns import FigureRow
from tuning.records.gains import is_error
from tuning.runs.note_groups import notes_at_the_end
from tuning.runs.verdicts import CONSTANT, ToUse, rival

if TYPE_CHECKING:
    from tuning.runs.results import RunResult
    from tuning.runs.run_counts import RunCounts, Typical

REPORT, LEADERBOARD_FILE = "report.html", "leaderboard.csv"  # in the run's folder


def sentences(result: RunResult, counts: RunCounts) -> list[str]:
    """Return a sentence on each thing that somebody should know of a run, the answer first. counts: its `summary`."""
    return [*answer(result, counts), *remarks(result, counts)]


def answer(result: RunResult, counts: RunCounts) -> list[str]:
    """Return what to use for how many customers; how many have a model, and how much better these are than knowing
    nothing and than the baseline on rows that they have not seen."""
    from tuning.runs.run_counts import to_use  # with pandas, which the copy into MLflow does without

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
        return [left + of_one(board.ends(1)[0], board.metric, board.mode, result.baseline)]
    counted = f"{left}{result.outcome(counts)}{without}; {amount(counts['trials'], 'trial')}."
    told = of_many(counts["typical"], board.metric, board.mode, result.baseline) if counts["succeeded"] else ""
    one = _one_for_all(counts, board.metric, result.directory.shown)
    return [*filter(None, (one, to_use(counts, board.standings, result.baseline), counted, told))]


def remarks(result: RunResult, counts: RunCounts) -> list[str]:
    """Return what is to be known beside the answer."""
    notes = notes_at_the_end(result.board().standings.best_studies(["customer", "notes"]))
    return [*(group.sentence for group in notes), *_pool(counts), *_ensembles(counts), *_without_target(counts)]


def report_line(result: RunResult) -> list[str]:
    """Return where the run's report is, as the last line of what is said of a run; nothing without one."""
    return [f"report       {result.directory.display(REPORT)}"] if result.directory.exists(REPORT) else []


def _pool(counts: RunCounts) -> list[str]:
    if why := counts["without_pool"]:
        alone = "There is no pool, so each model is of its own customer's rows alone"
        return [f"{alone}: {str(why['text']).rstrip('.')}. A resume does not try again; a new run does."]
    if not counts["pool_customers"]:
        return []
    whose, where = amount(counts["pool_customers"], "customer"), amount(counts["pool_members"], "model")
    return [f"The pool, of the rows of {whose}, is a member of {where}."]


def _one_for_all(counts: RunCounts, metric: str, run: str) -> str:
    """Say that one model for all customers is better than their own ones, where it is for most and not by chance."""
    better, compared, gain = counts["pool_better"], counts["pool_compared"], counts["pool_gain"]
    if not compared or not gain or 2 * better - compared <= 2 * compared**0.5:
        return ""
    less = f"with {_less(gain)} in the median" if is_error(metric) else f"by {gain:.2g} {metric} in the median"
    alone = "`result.predict(rows, pool=True)`" if is_interactive() else f"`{command('predict', run, '--pool')}`"
    return (
        f"One model for all customers is better here: the pool alone beats the own models of {better:,} of "
        f"{amount(compared, 'customer')}, {less}. It is a member of their models; {alone} asks it alone, for any "
        "customer."
    )


def _ensembles(counts: RunCounts) -> list[str]:
    found, size = counts["ensembles"], counts["model_bytes"]
    if not found:
        return []
    models = f"{amount(found, 'model')} {'is an ensemble' if found == 1 else 'are ensembles'} of several trials."
    if not size:  # none is saved
        return [models]
    return [
        f"{models} The models take {size_text(size)} in all; `ensemble: none` keeps the winners alone, which are "
        "smaller and predict faster."
    ]


def _without_target(counts: RunCounts) -> list[str]:
    found = counts["without_target"]
    said = f"{amount(found, 'row')} without a target {'is' if found == 1 else 'are'} left out"
    return [f"{said}: the leaderboard's column `without_target` has them by customer."] if found else []


def of_many(typical: Typical, metric: str, mode: str, baseline: GivenBaseline = None) -> str:
    """Return how good the typical model is. metric, mode: of the run. baseline: as the definition has it."""
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
        return f"Undecided: {row['test_rows']} hold-out rows{rare} cannot tell the model from {rival(baseline)}. "
    return {
        ToUse.MODEL.value: f"Use this model: it is surely better than {rival(baseline)}. ",
        ToUse.BASELINE.value: f"Keep the baseline, {baseline_name(baseline)}: surely better than the model. ",
        ToUse.CONSTANT.value: f"{CONSTANT.capitalize()} is as good or better: more rows may help. ",
    }.get(str(row["verdict"]), "")
