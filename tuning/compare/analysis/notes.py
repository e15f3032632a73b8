"""What must be said of the figures: what was matched, left out or failed, and what cannot be concluded."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tuning.compare.analysis.blocks import SEED
from tuning.compare.analysis.power import fewest_tasks
from tuning.compare.analysis.result import ComparisonResult
from tuning.compare.analysis.statistics import smallest_p
from tuning.notes.comparisons import ComparisonCode
from tuning.notes.note import Note


def notes(comparison: ComparisonResult) -> tuple[Note, ...]:
    """Return the notes, in the order of `ComparisonCode`; remarks on the search come last."""
    found = [
        *_size(comparison),
        *_failures(comparison),
        *_fewer_seeds(comparison),
        *_identical(comparison),
        *comparison.final.notes,
        *_hold_out(comparison),
        *_null_check(comparison),
    ]
    return (*sorted(found, key=lambda note: note.code.value), *comparison.remarks)


def _null_check(comparison: ComparisonResult) -> Iterator[Note]:
    check = comparison.null_check
    if check is not None:
        code = ComparisonCode.REPETITIONS_ALIKE if check.passed else ComparisonCode.REPETITIONS_DIFFER
        yield code(check.method, repetitions=check.repetitions, p=check.p, noun=comparison.noun)


def _size(comparison: ComparisonResult) -> Iterator[Note]:
    noun, count, alpha = comparison.noun, comparison.blocks.count, comparison.pairs.alpha
    if comparison.blocks.unit == SEED:
        yield ComparisonCode.ONE_TASK(noun=noun, seeds=count)
    if comparison.seeds == 1:
        yield ComparisonCode.ONE_SEED(noun=noun)
    family = comparison.pairs.family
    if smallest_p(count) * family > alpha:
        unit = "seed" if comparison.blocks.unit == SEED else noun
        code = ComparisonCode.TOO_FEW_FOR_SO_MANY if family > 1 else ComparisonCode.TOO_FEW
        yield code(
            blocks=count,
            unit=unit,
            alpha=alpha,
            smallest=smallest_p(count),
            family=family,
            needed=fewest_tasks(alpha / family),
        )


def _failures(comparison: ComparisonResult) -> Iterator[Note]:
    failures, total, noun = comparison.failures, len(comparison.final.tasks), comparison.noun
    for method, tasks in failures.tasks.items():
        yield ComparisonCode.FAILED_ON(method, failed=len(tasks), tasks=total, noun=noun, names=list(tasks))
    for method, count in failures.seeds.items():
        yield ComparisonCode.SEARCHES_FAILED(method, searches=count, noun=noun)
    if failures.trials:
        yield ComparisonCode.TRIALS_FAILED(counts=[f"{method} {count}" for method, count in failures.trials.items()])
    if failures.everywhere:
        yield ComparisonCode.FAILED_EVERYWHERE(names=list(failures.everywhere))


def _fewer_seeds(comparison: ComparisonResult) -> Iterator[Note]:
    """Yield methods with fewer searches of a task than another one; missing ones are not made up."""
    seeds = comparison.curves.frame.groupby(["task", "method"])["seed"].nunique().unstack()
    fewer = seeds.lt(seeds.max(axis=1), axis=0).sum()
    for method, count in fewer[fewer > 0].items():
        yield ComparisonCode.FEWER_SEEDS(str(method), fewer=int(count), tasks=len(seeds), noun=comparison.noun)


def _identical(comparison: ComparisonResult) -> Iterator[Note]:
    """Yield methods with the same trials, as when a model-based one never leaves its random start."""
    groups: dict[bytes, list[str]] = {}
    for method, frame in comparison.curves.frame.groupby("method", sort=False):
        if len(frame) > 1:
            key = pd.util.hash_pandas_object(frame[["task", "seed", "trial", "score"]], index=False)
            groups.setdefault(key.to_numpy().tobytes(), []).append(str(method))
    yield from (ComparisonCode.SAME_TRIALS(methods=names) for names in groups.values() if len(names) > 1)


def _hold_out(comparison: ComparisonResult) -> Iterator[Note]:
    """Yield the mean ranks on hold-out rows, and each method against the reference."""
    found, reference = comparison.hold_out, comparison.reference
    if found is None:
        return
    tested = {method: found.against(method, reference) for method in found.methods if method != reference}
    yield ComparisonCode.ON_HOLD_OUT(
        reference,
        tasks=found.losses.shape[1],
        noun=comparison.noun,
        ranks=[f"{method} {rank:.2f}" for rank, method in sorted(zip(found.ranks, found.methods, strict=True))],
        pairs=[
            ComparisonCode.PAIR_ON_HOLD_OUT(method, wins=counts.wins, losses=counts.losses, p=test.p)
            for method, (counts, test) in tested.items()
        ],
    )
