"""Whether a machine has what a trial takes, as far as that can be known without Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from glob import glob

from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.study.study import StudyTable, customers_of
from tuning.wording import name_list


def too_large(definition: Definition, studies: StudyTable, slots: int) -> Iterator[str]:
    """Notes on resources that a Ray of our own on this machine would not have; of a cluster nothing is known here.

    They are no refusals: the plan may be meant for a larger machine.
    """
    if not own_ray():
        return
    for resources in dict.fromkeys(study.resources for study in studies.first_of_each("resources")):
        for excess in _excess(resources, slots):
            if resources == definition.resources:
                yield f"{excess}, so no worker could start here."
            else:
                names = ids_of(studies.take(studies.shared("resources").test(resources.__eq__)))
                customers = "customer" if len(names) == 1 else "customers"
                yield f"{customers} {name_list(names)}: {excess}; no model would come of that here."


def fewer_at_once(resources: Resources, slots: int) -> Iterator[str]:
    """A note where what each slot takes leaves no room for all of them on this machine."""
    room = [slots // resources.cpus, nvidia_gpus() // resources.gpus if resources.gpus else slots]
    if own_ray() and 0 < (most := int(min(room))) < slots:
        yield f"resources: each slot takes so much that {most} of the {slots} slots work at once here."


def own_ray() -> bool:
    """Whether a run would start a Ray of its own on this machine."""
    ray = sys.modules.get("ray")
    return not os.environ.get("RAY_ADDRESS") and not (ray is not None and ray.is_initialized())


def ids_of(studies: StudyTable) -> list[str]:
    """The ids of the customers of these studies, each once."""
    found: list[str] = customers_of(studies).texts("id").unique().to_pylist()
    return found


def nvidia_gpus() -> int:
    """How many there are on this machine."""
    return len(glob("/dev/nvidia[0-9]*"))


def _excess(resources: Resources, slots: int) -> Iterator[str]:
    if resources.cpus > slots:
        yield f"resources.cpus: {resources.cpus:g} is more than the {slots} slots"
    gpus = nvidia_gpus()
    if resources.gpus > gpus:
        yield f"resources.gpus: {resources.gpus:g} is more than the {gpus} NVIDIA GPUs of this machine"
    for name in resources.custom:
        yield f"resources.custom: a Ray of this machine has no {name!r}, name a cluster by RAY_ADDRESS"
    gigabytes = memory() / 1e9
    if resources.memory_gb is not None and resources.memory_gb > gigabytes:
        yield f"resources.memory_gb: {resources.memory_gb:g} is more than the {gigabytes:.1f} GB of this machine"


def memory() -> int:
    """Bytes that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
