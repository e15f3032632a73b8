"""What came of a run in words, for a terminal, a notebook and pages, the same wherever they are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, cast

import pyarrow.compute as pc

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
from tuning.notes import FitCode
from tuning.records.columns import FigureRow
from tuning.records.gains import is_error
from tuning.records.schema import OK, POOLED
from tuning.records.tables import has_note
from tuning.runs.note_groups import notes_at_the_end
from tuning.runs.plan_file import frozen_definition
from tuning.runs.verdicts import CONSTANT, ToUse, rival

if TYPE_CHECKING:
    from tuning.records.ownership import Term
    from tuning.runs.leaderboard import Leaderboard
    from tuning.runs.run_counts import RunCounts, Typical
    from tuning.storage.run_directory import RunDirectory

REPORT, LEADERBOARD_FILE = "report.html", "leaderboard.csv"  # in the run's folder
REASONS = 3  # customers without a model that are named
ANSWERED = (OK, POOLED)  # the statuses of the others
IN_UNIT = ("mae", "rmse", "max_error", "median_absolute_error")  # metrics in the target's unit
UNITS = {
    *("seconds", "minutes", "hours", "days", "weeks", "months", "years", "metres", "meters", "km", "miles"),
    *("kg", "tons", "litres", "liters", "kw", "kwh", "mwh", "celsius", "degrees", "eur", "euros", "usd", "dollars"),
}


class Results(Protocol):
    """What is asked of a `RunResult`, which shows itself in these words."""

    directory: RunDirectory
    term: Term

    @property
    def unfinished(self) -> int: ...

    @property
    def goes_on(self) -> bool: ...

    @property
    def baseline(self) -> GivenBaseline: ...

    def board(self, sort: str = "customer") -> Leaderboard: ...

    def outcome(self, counts: RunCounts | None = None) -> str: ...


def sentences(result: Results, counts: RunCounts) -> list[str]:
    """Return all that is known of a run as a whole, the answer first: for pages. counts: its `summary`."""
    return [*answer(result, counts), *remarks(result, counts)]


def answer(result: Results, counts: RunCounts) -> list[str]:
    """Return the verdict, and the typical error against a constant guess and the baseline on rows not seen; for a
    single customer both in one line. One model for all comes first where it is better."""
    board, definition = result.board(), frozen_definition(result.directory, result.term)
    stopped = result.unfinished and not result.goes_on
    left = f"The run has not ended, {amount(result.unfinished, 'study')} left: " if stopped else ""
    if counts["customers"] == counts["succeeded"] == 1:
        return [left + of_one(board.ends(1)[0], board.metric, board.mode, result.baseline)]
    verdict = f"{left}{result.outcome(counts)}{_verdicts(result, counts)}; {amount(counts['trials'], 'trial')}."
    unit = unit_of(definition.target, board.metric)
    told = of_many(counts["typical"], board.metric, board.mode, result.baseline, unit) if counts["succeeded"] else ""
    return [*filter(None, (_one_for_all(counts, board.metric, result.directory.shown), verdict, told))]


def without_model(result: Results) -> list[str]:
    """Return the last customers of the leaderboard that have neither a model nor an answer, each with its reason."""
    rows = [row for row in result.board().ends(0, REASONS) if row["status"] not in ANSWERED]
    return [f"{row['customer']}: {row['reason']}" for row in rows]


def _verdicts(result: Results, counts: RunCounts) -> str:
    """Return what to use for how many customers."""
    found, few = counts["verdicts"], counts["few_hold_out_rows"]
    awaited = min(result.unfinished, counts["without_model"]) if result.goes_on else 0
    notes = result.board().standings.best_studies(["notes"])["notes"]
    leaks = pc.sum(has_note(notes, FitCode.LEAK), min_count=0).as_py()
    use = (
        (found[ToUse.MODEL], "use {}"),
        (found[ToUse.BASELINE], "keep the baseline for {}"),
        (found[ToUse.CONSTANT], f"{CONSTANT} is as good for {{}}"),
        (found[ToUse.UNDECIDED], f"{{}} undecided{f' ({few:,} with too few hold-out rows)' if few else ''}"),
        (counts["contradicted"], "the hold-out contradicts {}"),
        (leaks, "a column tells the target of {}"),
    )
    others = (
        (counts["pooled"], "{} answered by the pool"),
        (awaited, "{} not finished yet"),
        (counts["without_model"] - awaited, "{} without"),
    )
    told, rest = ([text.format(f"{count:,}") for count, text in each if count] for each in (use, others))
    return "; ".join([f": {', '.join(told)}" if told else "", *rest])


def remarks(result: Results, counts: RunCounts) -> list[str]:
    """Return what is to be known beside the answer."""
    notes = notes_at_the_end(result.board().standings.best_studies(["customer", "notes"]))
    return [*(group.sentence for group in notes), *_pool(counts), *_ensembles(counts), *_without_target(counts)]


def where(result: Results, names: Iterable[str] = (REPORT,)) -> list[str]:
    """Return where files of a run are, those that are there."""
    return [
        f"{name.partition('.')[0]:<8} {result.directory.display(name)}"
        for name in names
        if result.directory.exists(name)
    ]


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
        f"One model of all rows, the pool, beats the customers' own trials for {better:,} of "
        f"{amount(compared, 'customer')}, {less}. The models below have it as a member: use them. {alone} asks the "
        "pool alone, for any customer."
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


def unit_of(target: str | None, metric: str) -> str:
    """Return the unit of an error where the target's name ends with one.

    >>> unit_of("trip_minutes", "mae"), unit_of("minutes", "r2"), unit_of("churned", "mae")
    ('minutes', '', '')
    """
    words = re.findall("[a-z]+", (target or "").lower())
    return words[-1] if words and words[-1] in UNITS and metric in IN_UNIT else ""


def of_many(typical: Typical, metric: str, mode: str, baseline: GivenBaseline = None, unit: str = "") -> str:
    """Return how good the typical model is. metric, mode: of the run. baseline: as the definition has it."""
    score = typical["test_score"]
    if score is None:
        best = value_text(typical["cv_score"])
        return f"The typical best score is {best} ({better_text(metric, mode)})." if best else ""
    nothing, over = typical["constant_test_score"], typical["gain_over_constant"]
    if nothing is None or over is None:
        known = f" ({better_direction(mode)})"
    elif is_error(metric):
        known = f", {_less(over)} than a constant guess"
    else:
        known = f", a constant guess {value_text(nothing)}"
    value = f"{value_text(score)} {unit}".rstrip()
    return f"Typical {metric} on rows not seen: {value}{known}{_against_baseline(typical, metric, baseline)}."


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
    interval = f" (95 %: {low} to {high})" if low and high else ""
    return f"; gain over the baseline, {baseline_name(baseline)}: {gain}{unit}{interval}"


def of_one(row: FigureRow, metric: str, mode: str, baseline: GivenBaseline = None) -> str:
    """Return the answer for a single customer, or for an objective. baseline: as the definition has it."""
    if not row["trials"] and row["test_score"] is None:
        return f"The model, {row['model']}, has a known configuration, fitted on all rows: none is left to score it."
    use = _use_of_one(row, baseline)
    if row["test_score"] is None:
        stages = row["stages"]
        end = f" at the end of a schedule of {amount(stages, 'stage')}" if isinstance(stages, int) else ""
        values = params_text(row["params"]) if isinstance(row["params"], dict) else ""
        what, trials = "The model" if row["rows"] else "Experiment", amount(cast("int", row["trials"]), "trial")
        best = f"best {metric} {value_text(row['cv_score'])} of {trials} ({better_direction(mode)})"
        return f"{use}{what}: {best}, with {values}{end}."
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
