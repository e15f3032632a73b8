"""`tuning doctor`: whether runs can work here, and what to do where they cannot."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import metadata, requires
from tempfile import gettempdir

import click

from tuning.basics import exit_codes
from tuning.basics.documents import Json
from tuning.basics.environment import installed_version
from tuning.basics.wording import amount, duration, one_line
from tuning.cli.program import Command
from tuning.cli.shared_options import json_option
from tuning.errors import TuningError

OK, NOTE, WRONG = "ok", "note", "wrong"
LEAST_MEMORY, LEAST_SHARED = 1e9, 1e8  # bytes: per slot, of /dev/shm
SHARED = "/dev/shm"  # noqa: S108  # where Ray keeps its objects
COMPARED = ("tuning-service", "ray", "optuna", "scikit-learn", "xgboost", "mlflow", "pandas", "numpy", "pyarrow")
ANSWERS_S = 60  # a node that has not begun then is named
MISSING = "(missing)"  # in place of a version


@dataclass(frozen=True)
class Finding:
    """One line of the answer. state: "ok"; "note" for what is worth knowing; "wrong" for what stops a run."""

    name: str
    state: str
    said: str
    advice: str = ""  # what to do about it


@click.command(cls=Command)
@json_option
def doctor(output: str) -> None:
    """Look whether runs can work here: versions, memory, Ray, optional libraries; and what to do about each.

    It starts Ray once, which takes about ten seconds, or asks each node of the cluster at RAY_ADDRESS.
    """
    found = []
    for finding in examine():
        found.append(finding)
        if output == "table":
            click.echo(f"{finding.state:<6} {finding.name:<9} {finding.said}")
            if finding.advice:
                click.echo(f"{'':<17}{finding.advice}")
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in found], ensure_ascii=False))
    sys.exit(exit_codes.ERROR if any(finding.state == WRONG for finding in found) else 0)


def examine() -> Iterator[Finding]:
    """Yield all findings, each as soon as it is there."""
    yield from (_versions(), _extras(), *_memory())
    try:
        yield from _ray()
    except Exception as error:
        yield Finding("ray", WRONG, str(error) if isinstance(error, TuningError) else one_line(error))


def _versions() -> Finding:
    from packaging.requirements import Requirement

    wanted = [Requirement(each) for each in requires("tuning-service") or ()]
    wanted = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    wrong = [
        f"{each.name}{each.specifier} (found {found or MISSING})"
        for each in wanted
        if not (found := installed_version(each.name)) or found not in each.specifier
    ]
    shown = ", ".join(f"{name} {version}" for name, version in versions().items())
    if wrong:
        return Finding("versions", WRONG, f"{shown}; needed: {', '.join(wrong)}", "pip install -U tuning-service")
    return Finding("versions", OK, shown)


def _extras() -> Finding:
    """Name models and algorithms without their libraries, and how to install these."""
    from search_spaces.algorithms import registry
    from tuning.models.registry import families

    models = [name for name, family in families().items() if family.missing()]
    searchers = [name for name, algorithm in registry().items() if not algorithm.installed()]
    if not models and not searchers:
        return Finding("extras", OK, "every model and every search algorithm has its library")
    extras = set(metadata("tuning-service").get_all("Provides-Extra") or ())
    wanted = {*models, *("flaml" if "flaml" in registry()[name].requires else name for name in searchers)}
    pip = f"pip install 'tuning-service[{','.join(sorted(wanted & extras))}]'" if wanted & extras else ""
    by_hand = f"by hand, as docs/algorithms.md says: {', '.join(sorted(wanted - extras))}" if wanted - extras else ""
    said = f"without their libraries: {', '.join([*models, *searchers])}"
    return Finding("extras", NOTE, said, f"Only if you want them: {'; '.join(filter(None, (pip, by_hand)))}.")


def _memory() -> Iterator[Finding]:
    from tuning.planning.capacity import free_memory

    cpus, memory = len(os.sched_getaffinity(0)), free_memory()
    said = f"{amount(cpus, 'CPU')}, {memory / 1e9:.3g} GB of memory free"
    fewer = max(1, int(memory / LEAST_MEMORY))
    advice = f"A slot takes about a gigabyte: set `slots: {fewer}`." if memory < LEAST_MEMORY * cpus else ""
    yield Finding("machine", NOTE if advice else OK, said, advice)
    with contextlib.suppress(OSError):
        if shutil.disk_usage(SHARED).free < LEAST_SHARED:
            advice = "In a container: --shm-size=2g. Else Ray writes its objects to /tmp, which is slower."
            yield Finding("shared", NOTE, f"{SHARED} is nearly full, or small", advice)


def _ray() -> Iterator[Finding]:
    """Start Ray or connect to it, let a worker answer, and compare the versions of a cluster's nodes."""
    from tuning.definition.definition import define
    from tuning.driver.cluster import end_ray, start_ray
    from tuning.driver.log_capture import held_messages
    from tuning.planning.plan import make_plan

    space = {"x": {"type": "float", "low": 0.0, "high": 1.0}}
    plan = make_plan(define({"objective": dict, "search_space": space, "mlflow": False}), run_dir=gettempdir())
    began = time.perf_counter()
    with held_messages():
        own = start_ray(plan)
    try:
        import ray

        nodes = [node for node in ray.nodes() if node["Alive"]]
        differing = list(different_nodes(nodes))
        cpus = sum(node["Resources"].get("CPU", 0) for node in nodes)
    finally:
        end_ray()
    where = "starts here" if own else f"answers at {os.environ.get('RAY_ADDRESS', 'its address')}"
    took = duration(time.perf_counter() - began)
    yield Finding(
        "ray", OK, f"Ray {where}, and each node in {took}; {amount(len(nodes), 'node')}, {amount(int(cpus), 'CPU')}"
    )
    for said in differing:
        yield Finding("node", WRONG, said, "Every node needs the same software and folders: docs/cluster.md.")


def different_nodes(nodes: Sequence[Json]) -> Iterator[str]:
    """Yield a sentence for each node that cannot work or has other versions. nodes: those of `ray.nodes`."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = {}
    for node in nodes:
        place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        name = f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})"
        asked[name] = ray.remote(num_cpus=0)(versions).options(scheduling_strategy=place).remote()
    for name, answer in asked.items():
        try:
            there = ray.get(answer, timeout=ANSWERS_S)
        except Exception as error:  # such as without this program
            yield f"{name} cannot work: {one_line(error)}"
            continue
        yield from differences(name, there)


def differences(name: str, there: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each version of a node that differs from this machine's."""
    for what, here in versions().items():
        if there[what] != here:
            yield f"{name} has {what} {there[what]}, here it is {here}"


def versions() -> dict[str, str]:
    """Return this machine's versions of Python and of what a run needs."""
    return {"python": platform.python_version(), **{name: installed_version(name) or MISSING for name in COMPARED}}
