"""Whether a machine has what a trial takes, as far as that can be known without Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from glob import glob

from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.study.study import Studies, customers_of
from tuning.wording import name_list


def too_large(definition: Definition, studies: Studies, slots: int) -> Iterator[str]:
    """Notes on what is more than a Ray of our own on this machine would have; of a cluster nobody knows here.

    They are no refusals: the plan may be meant for a larger machine.
    """
    ray = sys.modules.get("ray")
    if os.environ.get("RAY_ADDRESS") or (ray is not None and ray.is_initialized()):
        return
    for resources in dict.fromkeys(study.resources for study in studies.first_of_each("resources")):
        for said in _excess(resources, slots):
            if resources == definition.resources:
                yield f"{said}, so no worker could start here."
            elif definition.placement != "spread":  # where trials take what the definition says
                names = who_asks(studies, resources)
                whose = "customer" if len(names) == 1 else "customers"
                yield f"{whose} {name_list(names)}: {said}; no model would come of that here."


def who_asks(studies: Studies, resources: Resources) -> list[str]:
    """The ids of the customers whose studies take these resources, each once."""
    asking = studies.take(studies.shared("resources").test(lambda each: each == resources))
    found: list[str] = customers_of(asking).texts("id").unique().to_pylist()
    return found


def _excess(resources: Resources, slots: int) -> Iterator[str]:
    if resources.cpus > slots:
        yield f"resources.cpus: {resources.cpus:g} is more than the {slots} slots"
    gpus = len(glob("/dev/nvidia[0-9]*"))
    if resources.gpus > gpus:
        yield f"resources.gpus: {resources.gpus:g} is more than the {gpus} NVIDIA GPUs of this machine"
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if resources.memory_gb is not None and resources.memory_gb > memory:
        yield f"resources.memory_gb: {resources.memory_gb:g} is more than the {memory:.1f} GB of this machine"
