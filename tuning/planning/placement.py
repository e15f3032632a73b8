"""The placement of each study: packed into a shard with others, or spread, with a Tune trial for each of its trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tuning.basics.columnar import DictionaryColumn, FieldColumn
from tuning.basics.wording import amount, name_list
from tuning.data.customers import about_rows
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError
from tuning.models.trainers.trainer import TrainWorkers
from tuning.planning.gangs import check_gangs, with_gang
from tuning.planning.room import memory
from tuning.study.study import PACKED, SPREAD, StudyTable, customers_of, work_amounts

LONG_ROWS = 25_000  # from here on even a linear model takes about half a second per trial
TRIAL_BYTES = 15.0  # of memory that a trial takes for each byte of its rows' file: 9 to 14 where it was measured
SHARE_OF_MEMORY = 0.8  # of a machine, for trials


@dataclass(frozen=True)
class Placements:
    """The placements of some studies, and the reasons.

    Attributes:
        spread: (n,) whether a study is spread; the others are packed.
        late: (n,) spread by `auto`: packed, the study would be the last to end.
        large: (n,) spread by `auto`: packed, its trials would take more memory than a slot has.
        small: (n,) several processes train its trials and one would be faster; no manifest asks for several.
        shares: (n,) its share of the run's work, estimated.
        bytes: (n,) its memory per trial, estimated.
    """

    spread: np.ndarray
    late: np.ndarray
    large: np.ndarray
    small: np.ndarray
    shares: np.ndarray
    bytes: np.ndarray

    @property
    def column(self) -> FieldColumn:
        """The column `placement` of the studies."""
        return DictionaryColumn(self.spread.astype(np.int32), [PACKED, SPREAD])

    def notes(self, studies: StudyTable, slots: int) -> Iterator[str]:
        """Notes on the studies that `auto` has spread, and on small ones with gangs."""
        if self.late.any():
            shares = _range(f"{share:.0%}" for share in _ends(self.shares[self.late]))
            names = _names(studies, self.late)
            if len(studies) == 1:
                yield f"the trials of {names} run side by side, on up to {amount(slots, 'slot')}."
            else:
                yield (
                    f"the trials of {names} run side by side on all {amount(slots, 'slot')}: with about {shares} of "
                    "the run's work (trials times rows), one slot would still be busy with it when the others are "
                    "through."
                )
        if self.large.any():
            sizes = _range(_gigabytes(needs) for needs in _ends(self.bytes[self.large]))
            yield (
                f"the trials of {_names(studies, self.large)} share the memory of all slots: each takes about {sizes}, "
                f"and one of {amount(slots, 'slot')} has {_gigabytes(slot_bytes(slots))}."
            )
        if (small := int(self.small.sum())) and len(studies) > 1:
            yield (
                f"{small} of {amount(len(studies), 'study')} have {LONG_ROWS:,} rows or fewer, and several processes "
                "train each of their trials, too, which takes longer than in one. A manifest gives actors to single "
                "customers."
            )


def placements(spec: RunSpec, studies: StudyTable, slots: int, workers: TrainWorkers | None = None) -> Placements:
    """The placements of a run's studies; `PlanError` where one is not possible.

    A customer's placement in the manifest counts before the definition's. With `auto` a study is spread where one slot
    would take longer for it than all slots for the whole run, or lacks the memory. It is packed if its scheduler pauses
    trials, if the run is a comparison, or if its configuration is fixed. A study with gangs is spread in any case.

    workers: of the trainers that an objective makes.

    Rows are all that is known of a trial before it runs; a model's own factor is the same for most studies of a run.
    """
    definition = spec.definition
    usual = None if definition.placement == "auto" else definition.placement
    options = customers_of(studies).shared("options")
    own = options.map(lambda options: options and options.placement)
    wanted = own.map(lambda placement: placement or usual)
    pauses = studies.shared("scheduler").test(lambda spec: bool(spec.pauses))
    spread, packed = wanted.test(lambda each: each == SPREAD), wanted.test(lambda each: each == PACKED)
    _check_own(studies, pauses & own.test(lambda each: each == SPREAD))
    spread &= ~pauses  # whose trials helpers train
    several = with_gang(definition, studies, workers)
    fixed = studies.present("fixed")  # there is one fit
    spread &= ~fixed
    check_gangs(studies.take(several & packed), studies.take(several & pauses), workers)
    amounts, needs = work_amounts(studies), TRIAL_BYTES * customers_of(studies).numbers("size")
    free = ~(spread | packed | several | pauses | fixed) & (definition.compare is None)
    shares = amounts / max(1.0, float(amounts.sum()))
    late = free & tail(shares, slots) & _long(spec, studies)
    large = free & ~late & (needs > slot_bytes(slots))
    chosen = options.test(lambda options: bool(options and options.search_space))  # actors for this very customer
    small = several & ~chosen & ~_long(spec, studies)
    return Placements(spread | several | late | large, late, large, small, shares, needs)


def tail(shares: np.ndarray, slots: int) -> np.ndarray:
    """(n,) whether a study would be the run's tail: one slot takes longer for it than all slots for the whole run.

    shares: (n,) of the run's work.
    """
    return shares * slots > 1 + 1e-9


def slot_bytes(slots: int) -> float:
    """A slot's share of this machine's memory."""
    return SHARE_OF_MEMORY * memory() / slots


def _long(spec: RunSpec, studies: StudyTable) -> np.ndarray:
    """(n,) whether a study's trials are worth a Tune trial each: they are long, or of unknown length."""
    if spec.definition.objective is not None:
        return np.ones(len(studies), dtype=bool)
    return np.asarray(about_rows(customers_of(studies)) > LONG_ROWS)


def _check_own(studies: StudyTable, wrong: np.ndarray) -> None:
    """`PlanError` where a manifest spreads a study under a scheduler that pauses trials."""
    if wrong.any():
        study = studies[int(np.argmax(wrong))]
        raise PlanError(
            f"customer {study.customer.id!r}: placement: spread: the scheduler {study.scheduler.name} pauses trials, "
            "so one process decides; take asha, or leave the customer's placement out."
        )


def _names(studies: StudyTable, chosen: np.ndarray) -> str:
    return name_list(studies.take(chosen).texts("id").to_pylist())


def _ends(amounts: np.ndarray) -> tuple[float, float]:
    return float(amounts.min()), float(amounts.max())


def _range(ends: Iterable[str]) -> str:
    return " to ".join(dict.fromkeys(ends))


def _gigabytes(amount: float) -> str:
    return f"{amount / 1e9:.2g} GB"


def waiting(spread: StudyTable, count: int, slots: int, widest: float) -> Iterator[str]:
    """A note where spread studies, which come first, leave no slot to the others.

    count: of all studies. widest: CPUs of a trial of a spread one.
    """
    others = count - len(spread)
    if others and slots > 1 and spread and slots - widest < 1:
        names = name_list(spread.texts("id").to_pylist(), 3)
        yield (
            f"a trial of {names} takes all {amount(slots, 'slot')}: {amount(others, 'other')} can begin when the last "
            "of these trials has ended."
        )
