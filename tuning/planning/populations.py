"""Which studies under schedulers that pause trials get helpers, and how many.

Such a study decides in one process. Where there are fewer studies than slots, helpers on the others train its trials
ahead of the decisions; its records are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from schedulers import SchedulerSpec
from tuning.definition.options import Resources
from tuning.definition.run_spec import RunSpec
from tuning.evaluation.objective import Objective, takes_state
from tuning.notes import Note, PlanCode
from tuning.planning.capacity import Bundle
from tuning.planning.placement import TRIAL_BYTES, slot_bytes
from tuning.study.study import StudyTable, customers_of


def helpers_of(
    spec: RunSpec,
    schedulers: Sequence[SchedulerSpec],
    studies: StudyTable,
    objective: Objective | None,
    batches: int,
    slots: int,
) -> int:
    """Return how many helpers each study gets, 2 at least; 0 where its own process trains its trials.

    Each helper takes the CPUs of a study and memory for its rows; there are as many as fit at once. There are
    none with `placement: packed`, nor for an objective without `state`, which cannot go on after the death of a helper.

    schedulers: of the studies. batches: workers that go through them.
    """
    definition = spec.definition
    if definition.placement == "packed" or not studies or not all(each.pauses for each in schedulers):
        return 0
    if definition.compare is not None and definition.placement == "auto":
        return 0
    if objective is not None and not takes_state(objective):
        return 0
    cpus = max(study.resources.cpus for study in studies.first_of_each("resources"))
    room = int(slots / (batches * max(cpus, 1)))
    largest = TRIAL_BYTES * float(customers_of(studies).numbers("size").max(initial=0))
    if largest:
        room = min(room, int(slots * slot_bytes(slots) / (batches * largest)) - 1)  # one for the study's own process
    found = min(room, int(studies.numbers("n_trials").max(initial=0)))
    return found if found > 1 else 0


def helpers_with_room(helpers: int, needs: Sequence[Resources], machines: Sequence[Bundle]) -> int:
    """Return how many helpers each batch gets on the machines that there are: the plan's, or fewer, or 0 for none.

    helpers: the plan's. needs: what the worker of each batch takes. machines: what each has; empty if not known.
    """
    if not helpers or not machines:
        return helpers
    need = max((resources.to_bundle() for resources in needs), key=lambda bundle: bundle["CPU"])
    places = sum(int(min(machine.get(name, 0) / n for name, n in need.items() if n)) for machine in machines)
    found = min(helpers, places // len(needs))
    return found if found > 1 else 0


def idle_slots(
    schedulers: Sequence[SchedulerSpec], studies: int, slots: int, objective: Objective | None
) -> Iterator[Note]:
    """Return a note on slots that studies without helpers leave free under schedulers that pause trials."""
    names = dict.fromkeys(each.name for each in schedulers if each.pauses)
    if names and studies < slots:
        stateless = objective is not None and not takes_state(objective)
        yield PlanCode.SLOTS_IDLE(
            " or ".join(names), studies=studies, slots=slots, lacking="a parameter `state`" * stateless
        )
