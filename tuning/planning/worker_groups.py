"""The worker groups of a plan: what trials take that several processes train, and what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from search_spaces import SearchSpace
from search_spaces.parameters import Constant
from tuning.basics.wording import name_list
from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.errors import DefinitionError, PlanError
from tuning.models.registry import families
from tuning.models.worker_group import GROUP_FIELDS, ActorGroup, WorkerGroup
from tuning.notes import Note, PlanCode
from tuning.planning.capacity import nvidia_gpus, own_ray
from tuning.planning.model_space import parameters_by_model
from tuning.study.study import StudyTable


def groups_in(space: SearchSpace) -> dict[str, ActorGroup]:
    """Return the models of a search space that several processes train, with their worker groups.

    Raises:
        DefinitionError: a worker group's value is not one, or varies.
    """
    found: dict[str, ActorGroup] = {}
    for name, parameters in parameters_by_model(space).items():
        if name not in families() or not families()[name].worker_groups:
            continue
        fields = [parameter for parameter in parameters if parameter.name in GROUP_FIELDS]
        if varied := [parameter.name for parameter in fields if not isinstance(parameter, Constant)]:
            raise DefinitionError(
                f"search_space: {name_list(varied)} of {name!r} cannot vary; write a constant, or the value next to "
                f"`estimator: {name}` in models."
            )
        try:
            worker_group = families()[name].worker_group({parameter.name: parameter.default for parameter in fields})
        except ValueError as error:
            raise DefinitionError(f"search_space: {error}") from error
        if worker_group is not None:
            found[name] = worker_group
    return found


def with_group(definition: Definition, studies: StudyTable, workers: WorkerGroup | None) -> np.ndarray:
    """(n,) whether several processes train a trial of each study. workers: of the trainers that an objective makes."""
    if definition.objective is not None:  # its parameters mean what it takes them for
        return np.full(len(studies), workers is not None)
    return studies.shared("space").test(lambda space: bool(groups_in(space)))


def largest_group(spaces: Iterable[SearchSpace]) -> ActorGroup | None:
    """Return the worker group with the most CPUs; None where trials are trained by one process."""
    found = [worker_group for space in spaces for worker_group in groups_in(space).values()]
    return max(found, key=lambda worker_group: (worker_group.cpus, worker_group.gpus_per_actor), default=None)


def trial_cpus(driver: Resources, worker_group: WorkerGroup | None) -> float:
    """CPUs of a trial and its worker group. driver: resources of the trial's own process."""
    return driver.cpus + (worker_group.cpus if worker_group else 0)


def check_groups(packed: StudyTable, pausing: StudyTable, workers: WorkerGroup | None) -> None:
    """Raise `PlanError` where studies with worker groups are to be packed, or have schedulers that pause trials.

    Each of their trials must be a Tune trial with a placement group of its own. workers: of the trainers that an
    objective makes.
    """
    wrong = packed or pausing
    if not wrong:
        return
    if workers is not None:
        reason, instead = "objective: several processes train each trial", ""
    else:
        names = sorted({name for study in wrong.first_of_each("space") for name in groups_in(study.space)})
        reason, instead = f"models: several processes train each trial of {name_list(names)}", "models without actors"
    need = f"{reason}, which needs placement: spread"
    if packed:
        raise PlanError(f"{need}; change `placement`{instead and f', or take {instead}'}.")
    scheduler = pausing[0].scheduler.name
    other = f"asha, or {instead}" if instead else "asha"
    raise PlanError(f"{need}, and there the scheduler {scheduler} cannot pause trials; take {other}.")


def group_notes(
    studies: StudyTable, resources: Iterable[tuple[Resources, WorkerGroup | None]], slots: int
) -> Iterator[Note]:
    """Return notes on trials with worker groups that a Ray of our own on this machine has no room for.

    studies: one for each of `Plan.trial_resources`. resources: of a trial's own process, and its worker group.
    """
    if not own_ray():
        return
    for study, (driver, worker_group) in zip(studies, resources, strict=True):
        if worker_group is None:
            continue
        options, workers = study.customer.options, worker_group.noun
        customer = study.customer.id if options and (options.search_space or options.resources) else ""
        if (cpus := trial_cpus(driver, worker_group)) > slots:
            yield PlanCode.GROUP_TOO_LARGE(customer, cpus=cpus, slots=slots, workers=workers)
        asked = sum(bundle.get("GPU", 0.0) for bundle in worker_group.bundles)
        if asked and driver.gpus + asked > nvidia_gpus():
            yield PlanCode.GROUP_WITHOUT_GPUS(customer, asked=driver.gpus + asked, have=nvidia_gpus(), workers=workers)
