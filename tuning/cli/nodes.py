"""What `tuning doctor` asks of each node of a cluster: the same software, and the folders of this one."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tuning.basics.documents import Json
from tuning.basics.environment import installed_version
from tuning.basics.wording import one_line

MISSING = "(missing)"  # in place of a version
ANSWERS_S = 60  # a node that has not begun then is told
COMPARED = ("tuning-service", "ray", "optuna", "scikit-learn", "xgboost", "catboost", "lightgbm", "pandas", "numpy")


def different_nodes(nodes: Sequence[Json], files: Sequence[str]) -> Iterator[str]:
    """What is not on a node as it is here, a sentence each. nodes: as of `ray.nodes`. files: that each has to see."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here, look = look_here([]), ray.remote(num_cpus=0)(look_here)
    asked = {}
    for node in nodes:
        place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        name = f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})"
        asked[name] = look.options(scheduling_strategy=place).remote(list(files))
    for name, answer in asked.items():
        try:
            there = ray.get(answer, timeout=ANSWERS_S)
        except Exception as error:  # such as without this program
            yield f"{name} cannot work: {one_line(error)}"
            continue
        yield from differences(name, there, here)


def differences(name: str, there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    """What is not on the node of a name as it is here. there, here: as of `look_here`."""
    for what, found in there.items():
        if what not in here:
            yield f"{name} does not see {what}"
        elif found != here[what]:
            yield f"{name} has {what} {found}, here it is {here[what]}"


def look_here(files: Sequence[str]) -> dict[str, str]:
    """The versions of this machine, and those of the files that it does not see."""
    found = {"python": platform.python_version(), **{name: installed_version(name) or MISSING for name in COMPARED}}
    return found | {file: "" for file in files if not os.access(Path(file), os.R_OK)}
