"""Whether a machine has what a trial takes, as far as that can be known without Ray."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from glob import glob

from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.study.study import Study
from tuning.wording import name_list


def too_large(definition: Definition, studies: Sequence[Study], slots: int) -> Iterator[str]:
    """Notes on what is more than a Ray of our own on this machine would have; of a cluster nobody knows here.

    They are no refusals: the plan may be meant for a larger machine.
    """
    ray = sys.modules.get("ray")
    if os.environ.get("RAY_ADDRESS") or (ray is not None and ray.is_initialized()):
        return
    customers: dict[Resources, dict[str, None]] = {}
    for study in studies:
        customers.setdefault(study.resources, {})[study.customer.id] = None
    for resources, names in customers.items():
        for said in _excess(resources, slots):
            if resources == definition.resources:
                yield f"{said}, so no worker could start here."
            elif definition.placement != "spread":  # where trials take what the definition says
                whose = "customer" if len(names) == 1 else "customers"
                yield f"{whose} {name_list(names)}: {said}; no model would come of that here."


def _excess(resources: Resources, slots: int) -> Iterator[str]:
    if resources.cpus > slots:
        yield f"resources.cpus: {resources.cpus:g} is more than the {slots} slots"
    gpus = len(glob("/dev/nvidia[0-9]*"))
    if resources.gpus > gpus:
        yield f"resources.gpus: {resources.gpus:g} is more than the {gpus} NVIDIA GPUs of this machine"
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    if resources.memory_gb is not None and resources.memory_gb > memory:
        yield f"resources.memory_gb: {resources.memory_gb:g} is more than the {memory:.1f} GB of this machine"
