"""What must be said beside the figures: what was matched, left out or failed, and what cannot be concluded."""

from __future__ import annotations

import pandas as pd

from tuning.basics.wording import amount, some_names
from tuning.compare.analysis.blocks import SEED
from tuning.compare.analysis.power import fewest_tasks
from tuning.compare.analysis.result import ComparisonResult
from tuning.compare.analysis.statistics import smallest_p


def notes(comparison: ComparisonResult) -> tuple[str, ...]:
    """Sentences, the most important first."""
    check = comparison.null_check
    said = () if check is None else (check.sentence(comparison.noun),)
    alarm = check is not None and not check.passed
    return (
        *(said if alarm else ()),
        *_size(comparison),
        *_failures(comparison),
        *_fewer_seeds(comparison),
        *comparison.remarks,
        *_identical(comparison),
        *comparison.final.notes,
        *_hold_out(comparison),
        *(() if alarm else said),
    )


def _size(comparison: ComparisonResult) -> list[str]:
    found, noun = [], comparison.noun
    count, alpha = comparison.blocks.count, comparison.pairs.alpha
    if comparison.blocks.unit == SEED:
        found.append(
            f"One {noun}: nothing can be concluded about other {noun}s. The tests below compare "
            f"{amount(count, 'seed')} and hold for this {noun} alone."
        )
    if comparison.seeds == 1:
        found.append(
            f"One seed: every figure of a single {noun} includes the luck of one search, and the A/A check is not "
            "possible. Use 5 seeds or more."
        )
    family = comparison.pairs.family
    if smallest_p(count) * family > alpha:
        unit = "seed" if comparison.blocks.unit == SEED else noun
        how = f"the smallest possible p is {smallest_p(count):.3g}"
        how += f", times {family} for as many comparisons" if family > 1 else ""
        way_out = " Fewer algorithms, or a named baseline, need fewer." if family > 1 else ""
        found.append(
            f"{amount(count, unit)}: no difference can be significant at {alpha:g} ({how}); "
            f"it takes at least {amount(fewest_tasks(alpha / family), unit)}.{way_out}"
        )
    return found


def _failures(comparison: ComparisonResult) -> list[str]:
    failures, noun = comparison.failures, comparison.noun
    total = len(comparison.final.tasks)
    found = [
        f"{method} failed on {len(tasks)} of {amount(total, noun)} and counts as worst there: {some_names(tasks)}."
        for method, tasks in failures.tasks.items()
    ]
    found += [
        f"{amount(count, 'further search')} of {method} finished no trial and "
        f"{'counts' if count == 1 else 'count'} as worst of their {noun} and seed."
        for method, count in failures.seeds.items()
    ]
    if failures.trials:
        counts = ", ".join(f"{method} {count}" for method, count in failures.trials.items())
        found.append(f"Failed trials: {counts}.")
    if failures.everywhere:
        found.append(f"Left out, since every algorithm failed there: {some_names(failures.everywhere)}.")
    return found


def _fewer_seeds(comparison: ComparisonResult) -> list[str]:
    """Methods with fewer searches of a task than another one has; nothing stands for what is not there."""
    seeds = comparison.curves.frame.groupby(["task", "method"])["seed"].nunique().unstack()
    fewer = seeds.lt(seeds.max(axis=1), axis=0).sum()
    return [
        f"{method} has fewer seeds than other algorithms on {count} of {amount(len(seeds), comparison.noun)}; its "
        "means are over those that there are."
        for method, count in fewer[fewer > 0].items()
    ]


def _identical(comparison: ComparisonResult) -> list[str]:
    """Methods whose every trial is the same, as when a model-based one never leaves its random start."""
    groups: dict[bytes, list[str]] = {}
    for method, frame in comparison.curves.frame.groupby("method", sort=False):
        if len(frame) > 1:
            key = pd.util.hash_pandas_object(frame[["task", "seed", "trial", "score"]], index=False)
            groups.setdefault(key.to_numpy().tobytes(), []).append(str(method))
    return [
        f"{', '.join(names[:-1])} and {names[-1]} have the same score in every single trial: they tried the same "
        "configurations. A model-based algorithm starts at random; give it more trials, or a shorter start."
        for names in groups.values()
        if len(names) > 1
    ]


def _hold_out(comparison: ComparisonResult) -> list[str]:
    found = comparison.hold_out
    return [] if found is None else [found.sentence(comparison.reference, comparison.noun)]
