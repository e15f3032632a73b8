"""The pictures of a run, one function each: of one study, and of all customers.

Each draws into `ax`, by default into a new figure of pyplot, which a notebook shows, and returns the Axes. Importing
this file loads matplotlib, so it is imported where something is drawn.

found: a customer's result. customers: a run's result, or a table with one row per customer, of Arrow or pandas, with
columns named as in the records of studies and in the leaderboard; what is missing there is left out of a picture.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tuning.basics.public import own_functions
from tuning.basics.wording import amount, setting_text, shorten
from tuning.records.gains import ERRORS
from tuning.records.schema import FAILED, FINISHED, OK, STOPPED, StepRecord, TrialRecord, best_first
from tuning.reporting.figure import COLOURS, shown_axes
from tuning.reporting.scale import cut_scale, log_scale

if TYPE_CHECKING:
    import pandas as pd

    from tuning.runs.customer_result import CustomerResult
    from tuning.runs.results import RunResult

    CustomerRows: TypeAlias = RunResult | pa.Table | pd.DataFrame

BLUE, RED, GREEN, ORANGE, GREY = COLOURS[0], COLOURS[1], COLOURS[2], COLOURS[4], "#9aa3ad"
MOST_BARS = 700  # one for each pixel, about; more customers are drawn as quantiles
MOST_DOTS = 2000  # each of them is a line of the file
MOST_NAMES = 12  # of families and parameters


#: How trials that ended alike are drawn: colour, mark, and what the legend says of them.
KINDS = {
    "best": (ORANGE, "o", ""),
    FINISHED: (BLUE, "o", "more went the whole way"),
    STOPPED: (GREY, "x", "stopped early"),
    FAILED: (RED, "X", "failed"),
}


def __dir__() -> list[str]:
    """Return what Tab shows: the pictures."""
    return own_functions(globals())


# --- one study ------------------------------------------------------------------------------------


def learning_curves(
    found: CustomerResult | Sequence[TrialRecord], ax: Axes | None = None, *, figure: str | None = None
) -> Axes:
    """Draw the score of each trial step by step, with the decisions of the scheduler and the stopping rules.

    A cross is where a trial was stopped. The best of those that went the whole way stands out. found: or some of its
    `trial_records`. figure: a further one that an objective reports, in place of the score.
    """

    def value(step: StepRecord) -> float:
        return step.score if figure is None else step.metrics.get(figure, np.nan)

    trials = found if isinstance(found, Sequence) else found.trial_records
    axes, drawn = ax or shown_axes(), [trial for trial in trials if trial.steps]
    best = next((trial for trial in best_first(drawn)), None)
    counts = Counter(trial.state for trial in drawn if trial is not best)
    for trial in drawn:
        colour, mark, _ = KINDS["best" if trial is best else trial.state]
        steps, scores = [step.step for step in trial.steps], [value(step) for step in trial.steps]
        axes.plot(steps, scores, color=colour, linewidth=2.4 if trial is best else 0.9, zorder=2 + (trial is best))
        axes.plot(steps[-1], scores[-1], mark, color=colour, markersize=5, zorder=3)
    if best is not None:
        axes.plot([], [], color=ORANGE, marker="o", label=f"the best: trial {best.trial}")
        counted = next((step for step in best.steps if step.step == best.best_step), None)
        if counted is not None and counted is not best.steps[-1]:  # its line may end far below others
            axes.plot(counted.step, value(counted), "*", color=ORANGE, markersize=12, label="its step that counts")
    for state, (colour, mark, what) in KINDS.items():
        if counts[state]:
            axes.plot([], [], color=colour, marker=mark, label=f"{counts[state]} {what}")
    every = [each for trial in drawn for step in trial.steps if math.isfinite(each := value(step))]
    # Bad trials would flatten the others: of errors, which have no end. What has one, as an accuracy, is to be seen.
    errors = max(every, default=0) > 1 if figure else any(t.mode == "min" for t in trials)
    if every and errors and 0 < 8 * min(every) < max(every):
        log_scale(axes, "y")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="step", ylabel=figure or (trials[0].metric if trials else "score"))
    if drawn:
        axes.legend(frameon=False, fontsize=8)
    return axes


def schedule(found: CustomerResult, ax: Axes | None = None) -> Axes:
    """Draw the hyperparameters of the winner that changed while it trained, a row each: darker is a larger value."""
    axes, winner = ax or shown_axes(), found.winner
    if winner is None or not (stages := winner.changing):
        axes.set_title("The winner has trained with the same hyperparameters from its beginning to its end")
        return axes
    begins = np.array([first for first, _ in stages])
    widths = np.diff([*begins, (winner.best_step or len(winner.steps)) + 1])
    for row, name in enumerate(stages[0][1]):
        values = [config[name] for _, config in stages]
        ranks = np.unique([each if isinstance(each, int | float) else 0 for each in values], return_inverse=True)[1]
        for begin, width, value, rank in zip(begins, widths, values, ranks / max(1, ranks.max()), strict=True):
            axes.barh(row, width, left=begin - 0.5, color=BLUE, alpha=0.25 + 0.5 * rank, edgecolor="white")
            turned = 90 * (width * 7 < widths.sum())
            text, at = shorten(setting_text(value), 12), begin + (width - 1) / 2
            axes.text(at, row, text, ha="center", va="center", fontsize=8, rotation=turned)
    axes.set_yticks(range(len(stages[0][1])), [shorten(name, 24) for name in stages[0][1]])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(title=f"The schedule of trial {winner.trial}, which won", xlabel="step")
    return axes


def column_importance(found: CustomerResult | pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw how much the winner's score on the hold-out rows falls without each column's say.

    found: or its `importance()`. A line is two standard deviations over the repeats.
    """
    table: pd.DataFrame = found.importance() if callable(getattr(found, "hold_out", None)) else found
    if "importance" not in getattr(table, "columns", ()):
        raise TypeError(
            "column_importance draws one customer: result.customer('acme'), or its importance(). Of all customers "
            "the table result.importance() says for how many a column matters."
        )
    axes, shown = ax or shown_axes(), table[:MOST_NAMES][::-1]
    colours = [BLUE if matters else GREY for matters in shown["matters"]]
    names = [shorten(str(name), 40) for name in shown["column"]]
    axes.barh(names, shown["importance"], xerr=2 * shown["std"], color=colours, ecolor="#555555")
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.set_xlabel("how much worse the score is with the column shuffled\n(hold-out rows; grey: not clearly)")
    return axes


# --- all customers --------------------------------------------------------------------------------


def gains(customers: CustomerRows, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw how the gain over the baseline is distributed: a bar per customer, the largest first.

    customers: with the column `gain`, of an error in %. metric: a name of it, needed only for a table without a column
    `metric`. Gains far beyond all others are cut off, and named where there is a column `customer`.
    """
    customers = _table(customers)
    axes, found, unit = ax or shown_axes(), _numbers(customers, "gain"), _metric(customers, metric)
    helped, compared = int((found > 0).sum()), int(np.isfinite(found).sum())
    unit = f"% of its {unit}" if unit in ERRORS else unit
    cut_scale(axes, found[np.isfinite(found)], _ids(customers, np.isfinite(found)), at_zero=True)
    found = np.sort(found[np.isfinite(found)])[::-1]
    count = min(len(found), MOST_BARS)
    shown = found[np.arange(count) * len(found) // max(1, count)]
    width = len(found) / max(1, count)
    places, colours = (np.arange(count) + 0.5) * width + 0.5, [BLUE if gain > 0 else RED for gain in shown]
    axes.bar(places, shown, width=width, color=colours)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(
        title=f"Better than the baseline for {helped:,} of {amount(compared, 'customer')}",
        xlabel="customers, the largest gain first",
        ylabel=f"gain over the baseline\n({unit}, hold-out)",
    )
    return axes


def baseline_and_tuned(customers: CustomerRows, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the hold-out score of each customer's model against its baseline's; on the line nothing has changed.

    customers: with the columns `test_score` and `baseline_test_score`. metric: as of `gains`. Scores far beyond all
    others are cut off, as gains are.
    """
    axes, (tuned, baseline), names, metric = _scored(customers, metric, ax, "baseline_test_score")
    if len(tuned):
        axes.axline((tuned[0], tuned[0]), slope=1, color="black", linewidth=0.8)
    _dots(axes, baseline, tuned, "on the line nothing has changed")
    cut_scale(axes, tuned, names)
    cut_scale(axes, baseline, names, along="x")
    axes.set(xlabel=f"baseline ({metric}, hold-out)", ylabel=f"tuned ({metric}, hold-out)")
    return axes


def score_and_size(customers: CustomerRows, metric: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw the hold-out score of each customer's model against how many rows the customer has.

    customers: with the columns `test_score` and `rows`. metric: as of `gains`. Scores far beyond all others are cut
    off, as gains are.
    """
    axes, (score, rows), names, metric = _scored(customers, metric, ax, "rows")
    _dots(axes, rows, score, "do more rows score better?")
    if len(rows) and rows.max() > 20 * rows.min():
        log_scale(axes, "x")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    low, high = np.quantile(score, [0.25, 0.75]) if len(score) else (1.0, 1.0)
    # Errors of targets of several sizes, and not of one customer that is far beyond all others.
    if len(score) and 0 < score.min() < 0.01 * score.max() and high > 5 * low:
        log_scale(axes, "y")
    else:
        cut_scale(axes, score, names)
    axes.set(xlabel="rows of the customer", ylabel=f"hold-out score ({metric})")
    return axes


def winning_families(customers: CustomerRows, ax: Axes | None = None) -> Axes:
    """Draw how many customers each model family wins, and in how many ensembles it is a member.

    customers: with the columns `family` (of the winner), `ensemble` (JSON, as in the records) and `status`.
    """
    customers, axes = _table(customers), ax or shown_axes()
    found = customers.filter(pc.and_(pc.equal(customers["status"], OK), customers["family"].is_valid()))
    wins = Counter({each["values"]: each["counts"] for each in pc.value_counts(found["family"]).to_pylist()})
    ensembles = found.filter(found["ensemble"].is_valid())
    members = Counter[str]()
    for family, ensemble in zip(*(ensembles[name].to_pylist() for name in ("family", "ensemble")), strict=True):
        members.update({member["family"] for member in json.loads(ensemble)} - {family})
    names = [name for name, _ in (wins + members).most_common(MOST_NAMES)][::-1]
    axes.barh(names, [wins[name] for name in names], color=BLUE, label="its trial wins")
    if members.total():
        left = [wins[name] for name in names]
        axes.barh(
            names, [members[name] for name in names], left=left, color=COLOURS[5], label="member of another's ensemble"
        )
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18), "ncols": 2}  # beside the bars, not on them
        axes.legend(frameon=False, fontsize=8, **below)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(title="Which family wins, for how many customers", xlabel="customers")
    return axes


def parameters_across_customers(effects: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """Draw which hyperparameters decide, over all customers, how well a trial does among its customer's others.

    effects: of `RunResult.parameter_effects`, the largest first.
    """
    axes, shown = ax or shown_axes(), list(effects.items())[:MOST_NAMES][::-1]
    axes.barh([shorten(name, 40) for name, _ in shown], [share for _, share in shown], color=BLUE)
    axes.set(
        title="Which hyperparameters matter", xlabel="what the better half of the trials has in common (PED-ANOVA)"
    )
    return axes


def time_and_failures(customers: CustomerRows, ax: Axes | None = None) -> Axes:
    """Draw a histogram of the seconds that customers took, those with a model and those without.

    customers: with the columns `seconds` and `status`.
    """
    customers, axes = _table(customers), ax or shown_axes()
    seconds = _numbers(customers, "seconds")
    has_model = np.array([status == OK for status in customers["status"].to_pylist()], dtype=bool)
    known = np.isfinite(seconds) & (seconds > 0)
    low, high = (seconds[known].min(), seconds[known].max()) if known.any() else (1.0, 1.0)
    wide = high > 20 * low
    bins = np.geomspace(low, high, 31) if wide else np.linspace(low, max(high, low * 1.001), 31)
    both = [(has_model, BLUE, "with a model"), (~has_model, RED, "without a model")]
    parts = [part for part in both if part[0].any()] or both
    axes.hist(
        [seconds[known & chosen] for chosen, _, _ in parts],
        bins=bins.tolist(),
        stacked=True,
        color=[colour for _, colour, _ in parts],
        label=[f"{int(chosen.sum()):,} {label}" for chosen, _, label in parts],
    )
    if wide:
        log_scale(axes, "x")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(title="How long customers took", xlabel="seconds, all trials of a customer together", ylabel="customers")
    axes.legend(frameon=False, fontsize=8)
    return axes


# --- what they share ------------------------------------------------------------------------------


def _scored(
    customers: CustomerRows, metric: str | None, ax: Axes | None, other: str
) -> tuple[Axes, tuple[np.ndarray, np.ndarray], list[str | None], str]:
    """Return the axes; hold-out scores and another column of customers that have both; their ids; the metric."""
    table = _table(customers)
    score, values = _numbers(table, "test_score"), _numbers(table, other)
    there = np.isfinite(score) & np.isfinite(values)
    return ax or shown_axes(), (score[there], values[there]), _ids(table, there), _metric(table, metric)


def _dots(axes: Axes, x: np.ndarray, y: np.ndarray, what: str) -> None:
    """Draw a dot per customer, of many of some from all over, and say so."""
    some = slice(None, None, max(1, -(-len(x) // MOST_DOTS)))
    axes.scatter(x[some], y[some], color=BLUE, alpha=0.65, s=18)
    shown = "One dot per customer" if some.step == 1 else f"{len(x[some]):,} of {amount(len(x), 'customer')}"
    axes.set_title(f"{shown}; {what}")


def _table(customers: CustomerRows) -> pa.Table:
    """Return one row per customer; `TypeError` of what has none."""
    if isinstance(customers, pa.Table):
        return customers
    if callable(best := getattr(customers, "best_studies", None)):
        found = best()
        return found.append_column("metric", pa.repeat(customers.board().metric, len(found)))
    if not hasattr(customers, "columns"):
        raise TypeError(f"this picture is of a run's customers: give its result, not {customers!r:.40}.")
    return pa.Table.from_pandas(customers)


def _metric(table: pa.Table, given: str | None) -> str:
    """Return the metric of scores: the one that is given, else that of the customers."""
    found = table["metric"].drop_null().unique().to_pylist() if "metric" in table.column_names else []
    if given is None and not found:
        raise TypeError("name the metric of these scores, such as metric='rmse': the table has no column `metric`.")
    return given or str(found[0])


def _numbers(table: pa.Table, column: str) -> np.ndarray:
    """Return a column with NaN where nothing is; nearly every other way from Arrow to numpy loads pandas."""
    return np.array(table[column].to_pylist(), dtype=float)


def _ids(customers: pa.Table, chosen: np.ndarray) -> list[str | None]:
    """Return the ids of some of the customers; none where the table has no such column."""
    if "customer" not in customers.column_names:
        return []
    ids: list[str | None] = customers["customer"].filter(pa.array(chosen)).to_pylist()
    return ids
