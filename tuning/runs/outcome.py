"""What came of a run in sentences, for a terminal and for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuning.basics.public import typing
from tuning.basics.wording import amount, command, size_text, some_names
from tuning.runs.answer import of_many, of_one, to_use

if TYPE_CHECKING:
    from tuning.runs.results import RunResult
    from tuning.runs.run_counts import RunCounts  # with pandas, which the copy into MLflow does without

REPORT, LEADERBOARD_FILE = "report.html", "leaderboard.csv"  # in the run's folder


def sentences(result: RunResult, counts: RunCounts) -> list[str]:
    """A sentence on each thing that somebody should know of a run, the answer first. counts: its `summary`."""
    return [*answer(result, counts), *remarks(result, counts)]


def answer(result: RunResult, counts: RunCounts) -> list[str]:
    """What to use for how many customers; how many have a model, and how much better these are than knowing nothing and
    than the baseline on rows that they have not seen."""
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
        return [left + of_one(board.first(1)[0], board.metric, board.mode, result.baseline)]
    counted = f"{left}{result.outcome(counts)}{without}; {amount(counts['trials'], 'trial')}."
    told = of_many(counts["typical"], board.metric, board.mode, result.baseline) if counts["succeeded"] else ""
    return [*filter(None, (to_use(counts, board.standings, result.baseline), counted, told))]


def remarks(result: RunResult, counts: RunCounts) -> list[str]:
    """What is to be known beside the answer."""
    return [
        *_contradicted(counts),
        *_pool(counts),
        *_fixed(counts),
        *_ensembles(counts),
        *_constants(counts),
        *_too_good(counts),
        *_without_target(counts),
        *_notes(counts, result.directory.shown),
    ]


def report_line(result: RunResult) -> list[str]:
    """Where the run's report is, as the last line of what is said of a run; nothing without one."""
    return [f"report       {result.directory.display(REPORT)}"] if result.directory.exists(REPORT) else []


def _contradicted(counts: RunCounts) -> list[str]:
    """What to know before a model is used, so it is said first."""
    found = counts["contradicted"]
    if not found:
        return []
    who = f"{amount(found, 'model')} {'is' if found == 1 else 'are'}"
    it, its_note = ("it", "its note") if found == 1 else ("them", "their notes")
    return [
        f"{who} contradicted by the hold-out rows: much worse there than the folds promised, and not by chance. Before "
        f"you use {it}, find out why; {its_note} and the report say what the cause may be."
    ]


def _pool(counts: RunCounts) -> list[str]:
    if why := counts["without_pool"]:
        alone = "There is no pool, so each model is of its own customer's rows alone"
        return [f"{alone}: {str(why['text']).rstrip('.')}. A resume does not try again; a new run does."]
    if not counts["pool_customers"]:
        return []
    whose, where = amount(counts["pool_customers"], "customer"), amount(counts["pool_members"], "model")
    return [f"The pool, of the rows of {whose}, is a member of {where}."]


def _fixed(counts: RunCounts) -> list[str]:
    found = counts["fixed"]
    if not found or counts["customers"] == 1:
        return []
    was, each = ("was", "it") if found == 1 else ("were", "each")
    return [f"The configuration of {amount(found, 'model')} {was} known: {each} was fitted once, without a trial."]


def _ensembles(counts: RunCounts) -> list[str]:
    found, size = counts["ensembles"], counts["model_bytes"]
    if not found:
        return []
    pooled = counts["pool_members"]
    of = "several trials, or of trials and the pool" if pooled else "several trials"
    models = f"{amount(found, 'model')} {'is an ensemble' if found == 1 else 'are ensembles'} of {of}."
    if not size:  # none is saved
        return [models]
    alone = "`ensemble: none` with `pool: off`" if pooled else "`ensemble: none`"
    return [
        f"{models} The models take {size_text(size)} in all; {alone} keeps the winners alone, which are smaller and "
        "predict faster."
    ]


def _constants(counts: RunCounts) -> list[str]:
    found = counts["constants"]
    if not found:
        return []
    models = f"{amount(found, 'model')} {'is a constant' if found == 1 else 'are constants'}"
    return [f"{models}: nothing was better on the folds, and their notes say by how much."]


def _too_good(counts: RunCounts) -> list[str]:
    """A column is left out for all only where most customers show that it tells the target."""
    found, leaking, models = counts["too_good"], counts["leaking"], counts["succeeded"]
    told = [f"{amount(found, 'model')} {'is' if found == 1 else 'are'} perfect on every fold."] * bool(found)
    if everywhere := [name for name, leak in leaking.items() if 2 * leak["customers"] > models]:
        from tuning.evaluation.leaks import drop_text  # with pandas, which the copy into MLflow does without

        names = ", ".join(
            f"{name!r} ({leaking[name]['customers']:,} of {amount(models, 'model')})" for name in everywhere
        )
        told.append(f"A column may tell the target, as it alone does as well as the model: {names}.")
        told.append(f"What is not known before the target: leave it out with {drop_text(everywhere)}.")
    for name, leak in leaking.items():
        if name not in everywhere:
            more = leak["customers"] - len(leak["first"])
            whose = some_names(leak["first"]) + (f" and {more:,} more" if more else "")
            told.append(
                f"{name!r} alone does as well as the model of {whose}: look at it there before you use that model."
            )
    if found and not leaking:
        told.append("A column may tell the target: find it, and leave it out with `drop`.")
    return [" ".join(told)] if told else []


def _without_target(counts: RunCounts) -> list[str]:
    found = counts["without_target"]
    said = f"{amount(found, 'row')} without a target {'is' if found == 1 else 'are'} left out"
    return [f"{said}: the leaderboard's column `without_target` has them by customer."] if found else []


def _notes(counts: RunCounts, run: str) -> list[str]:
    if not counts["with_notes"]:
        return []
    where = "`result.leaderboard()`" if typing() else f"`{command('leaderboard', run, '--output', 'csv')}`"
    return [
        f"Notes are on {counts['with_notes']:,} of {amount(counts['customers'], 'customer')}, such as a target far "
        f"from all others: the column `notes` of {where}."
    ]
