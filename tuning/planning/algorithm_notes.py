"""Notes of a plan on its algorithms and schedulers: what they cannot be told, and when they search at random."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from schedulers import SchedulerSpec
from search_spaces import SearchSpace
from search_spaces.algorithms import Algorithm, unlearning
from tuning.basics.wording import amount

SHOWN_LABELS = 4  # parameters in a note


def untold_facts(algorithms: Sequence[Algorithm], space: SearchSpace) -> Iterator[str]:
    """Facts about the run's space that an algorithm cannot be told, each sentence once."""
    by_sentence: dict[str, dict[str, None]] = {}
    for algorithm in algorithms:
        for sentence in algorithm.losses(space):
            label, _, what = sentence.partition(": ")
            by_sentence.setdefault(f"{algorithm.name}: {what or label}", {})[label if what else ""] = None
    for sentence, labels in by_sentence.items():
        names = [label for label in labels if label]
        shown = ", ".join(names[:SHOWN_LABELS])
        more = f" and {len(names) - SHOWN_LABELS} more" if len(names) > SHOWN_LABELS else ""
        yield f"{sentence}{f' ({shown}{more})' if names else ''}."


def finite_spaces(algorithms: Sequence[Algorithm], space: SearchSpace, n_trials: int) -> Iterator[str]:
    """Algorithms that have a limited number of configurations to try."""
    for algorithm in algorithms:
        size = algorithm.count(space)
        if size is None or (size > n_trials and algorithm.name != "grid"):
            continue
        left = (
            f"{size - n_trials:,} more than there are trials"
            if size > n_trials
            else "a study ends with the last of them"
        )
        yield f"{algorithm.name}: {amount(size, 'configuration')}, the default one included; {left}."


def random_starts(algorithms: Iterable[Algorithm], space: SearchSpace, n_trials: int, known: int = 0) -> Iterator[str]:
    """Algorithms that are random search, because their start is as long as a study. known: points with a score."""
    for algorithm in algorithms:
        start = algorithm.startup(space, n_trials) - known
        if start < n_trials:
            continue
        option = f" or lower {algorithm.startup_option}" if algorithm.startup_option else ""
        yield (
            f"{algorithm.name} is random search here: its model proposes nothing before {_trials(start)}, and a study "
            f"has {n_trials}; raise trials{option}."
        )


def deaf_pairs(pairs: Iterable[tuple[Algorithm, SchedulerSpec]]) -> Iterator[str]:
    """Pairs in which the algorithm learns nothing from most trials, because the scheduler stops them."""
    noted = set()
    for algorithm, scheduler in pairs:
        if not (algorithm.full_trials_only and scheduler.stops) or (algorithm.name, scheduler.name) in noted:
            continue
        noted.add((algorithm.name, scheduler.name))
        options = ", ".join(f"{name}: {value}" for name, value in algorithm.to_dict().items() if name != "name")
        yield (
            f"{algorithm.name} ({options}) learns from full trials only, and {scheduler.name} stops most: until enough "
            "are full it is random search. Take scheduler: fifo, or an algorithm that learns from stopped trials, such "
            "as optuna with its usual sampler."
        )


def order_matters(pairs: Iterable[tuple[Algorithm, SchedulerSpec]], slots: int, gang: float) -> Iterator[str]:
    """A note where trials of a study overlap: the order of their reports decides what is proposed and stopped.

    slots: how many trials overlap. gang: CPUs of a trial that several processes train; 0 where there is none.
    """
    one_by_one = f"slots: {ceil(gang)}" if gang else "slots: 1 or placement: packed"
    for algorithm, scheduler in pairs:
        learns = algorithm.name not in unlearning()
        if slots > 1 and (learns or scheduler.stops):
            decides = " and ".join(
                [f"what {algorithm.name} proposes"] * learns + [f"what {scheduler.name} stops"] * scheduler.stops
            )
            yield (
                f"up to {amount(slots, 'trial')} of a study run at once, and the order in which they report decides "
                f"{decides}: a second run may find something else. {one_by_one} repeats it exactly."
            )
            return


def _trials(count: int) -> str:
    return f"{amount(count, 'trial')} {'has' if count == 1 else 'have'} ended"
