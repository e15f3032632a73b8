"""`tuning doctor`: whether runs can work here, and what to do where they cannot."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import metadata, requires
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

import click

from tuning.basics import exit_codes
from tuning.basics.environment import installed_version
from tuning.basics.wording import amount, duration, one_line
from tuning.cli.nodes import MISSING, different_nodes
from tuning.cli.program import Command
from tuning.errors import TuningError
from tuning.notes import PlanCode

if TYPE_CHECKING:
    from tuning.storage.run_directory import RunDirectory

OK, NOTE, WRONG = "ok", "note", "wrong"
LEAST_DISK, LEAST_MEMORY, LEAST_SHARED = 2e9, 1e9, 1e8  # bytes: of the disk, per slot, of /dev/shm
SHARED = "/dev/shm"  # noqa: S108  # where Ray keeps its objects
MEASURED = ("catboost", "lightgbm")  # families of the default search that bring a package of their own
WITHOUT_THEM = "on 70 customers, 20 trials were worse on 49 and better on 20, 0.7 % worse in the median"
LEAST_FILES = 4096  # that may be open at once; Ray opens a few per worker
SHOWN = ("ray", "optuna", "scikit-learn", "xgboost", "mlflow", "pandas", "numpy", "pyarrow")


@dataclass(frozen=True)
class Finding:
    """What came of one look.

    Attributes:
        name: of what was looked at.
        state: "ok"; "note" for what is worth knowing; "wrong" for what stops a run.
        said: what was found.
        advice: what to do about it; empty where there is nothing to do.
    """

    name: str
    state: str
    said: str
    advice: str = ""


@click.command(cls=Command)
@click.option("--storage", default="runs", show_default=True, help="Where runs are kept: a folder or s3://…")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def doctor(storage: str, output: str) -> None:
    """Look whether runs can work here: versions, storage, Ray, MLflow, memory; and what to do about each.

    It starts Ray once, which takes about ten seconds.
    """
    found = []
    for finding in examine(storage):
        found.append(finding)
        if output == "table":
            click.echo(f"{finding.state:<6} {finding.name:<9} {finding.said}")
            if finding.advice:
                click.echo(f"{'':<17}{finding.advice}")
    if output == "json":
        click.echo(json.dumps([asdict(finding) for finding in found], ensure_ascii=False))
    sys.exit(exit_codes.ERROR if any(finding.state == WRONG for finding in found) else 0)


def examine(storage: str) -> Iterator[Finding]:
    """All findings, each as soon as it is there. storage: as the definition's key."""
    looks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("versions", _versions),
        ("extras", _extras),
        ("shadows", _shadows),
        ("machine", _machine),
        ("storage", lambda: _storage(storage)),
        ("ray", lambda: _ray(storage)),
        ("mlflow", lambda: _mlflow(storage)),
    ]
    for name, look in looks:
        try:
            yield from look()
        except Exception as error:  # one that cannot be made is a finding, too
            said = str(error) if isinstance(error, TuningError) else one_line(error)
            yield Finding(name, WRONG, said)


def _versions() -> Iterator[Finding]:
    from packaging.requirements import Requirement

    old = []
    for requirement in map(Requirement, requires("tuning-service") or ()):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = installed_version(requirement.name)
        if not found:
            old.append(f"{requirement.name} is not installed")
        elif found not in requirement.specifier:
            old.append(f"{requirement.name} {found} (needs {requirement.specifier})")
    shown = ", ".join(f"{name} {installed_version(name) or MISSING}" for name in ("tuning-service", *SHOWN))
    said = f"python {platform.python_version()}, {shown}"
    yield Finding(
        "versions", WRONG if old else OK, "; ".join([said, *old]), "pip install -U tuning-service" * bool(old)
    )


def _extras() -> Iterator[Finding]:
    from search_spaces.algorithms import registry
    from tuning.models.registry import families

    models = [name for name, family in families().items() if family.missing()]
    missing = [name for name, algorithm in registry().items() if not algorithm.installed()]
    if not models and not missing:
        yield Finding("extras", OK, "every model and every search algorithm has its library")
        return
    parts = [f"models {', '.join(models)}"] * bool(models) + [f"algorithms {', '.join(missing)}"] * bool(missing)
    extras = set(metadata("tuning-service").get_all("Provides-Extra") or ())
    wanted = [*models, *("flaml" if "flaml" in registry()[name].requires else name for name in missing)]
    known = sorted(extras.intersection(wanted))
    pip = f"pip install 'tuning-service[{','.join(known)}]'" if known else "their commands are in docs/algorithms.md"
    others = ", ".join(sorted({*wanted} - extras))
    by_hand = f"; by hand, as docs/algorithms.md says: {others}" if others else ""
    yield Finding(
        "extras", NOTE, f"without their libraries: {'; '.join(parts)}", f"Only if you want them: {pip}{by_hand}."
    )
    if missed := [name for name in MEASURED if name in models]:
        said = f"{' and '.join(missed)} {'is' if len(missed) == 1 else 'are'} not installed, and the default search"
        yield Finding("models", NOTE, f"{said} does without: {WITHOUT_THEM}", pip)


def _shadows() -> Iterator[Finding]:
    from tuning.planning.plan_notes import shadowed_packages

    found = list(map(PlanCode.SHADOWED_PACKAGE, shadowed_packages()))
    for note in found:
        yield Finding("shadows", WRONG, str(note))
    if not found:
        yield Finding("shadows", OK, "nothing in the current folder is called like a package of a run")


def _machine() -> Iterator[Finding]:
    from tuning.planning.capacity import free_memory

    cpus, memory = len(os.sched_getaffinity(0)), free_memory()
    said = f"{amount(cpus, 'CPU')}, {memory / 1e9:.3g} GB of memory free"
    if memory < LEAST_MEMORY * cpus:
        fewer = max(1, int(memory / LEAST_MEMORY))
        yield Finding("machine", NOTE, said, f"A slot takes about a gigabyte: set `slots: {fewer}`.")
    else:
        yield Finding("machine", OK, said)
    if (threads := os.environ.get("OMP_NUM_THREADS", "1")) != "1":
        advice = "Unset it: a fit takes one thread, or as many as the `cpus` of its slot."
        yield Finding("threads", NOTE, f"OMP_NUM_THREADS is {threads}, so that slots compete for the CPUs", advice)
    with contextlib.suppress(ImportError, OSError):
        import resource

        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if 0 <= files < LEAST_FILES:
            advice = f"Before a run with many slots: ulimit -n {16 * LEAST_FILES}"
            yield Finding("files", NOTE, f"a process may have {amount(files, 'file')} open at once", advice)
    with contextlib.suppress(OSError):
        if shutil.disk_usage(SHARED).free < LEAST_SHARED:
            advice = "In a container: --shm-size=2g. Else Ray writes its objects to /tmp, which is slower."
            yield Finding("shared", NOTE, f"{SHARED} is nearly full, or small", advice)


def _storage(storage: str) -> Iterator[Finding]:
    with _probe(storage) as directory:
        began = time.perf_counter()
        directory.write("probe", b"tuning")
        directory.read("probe")
        took = time.perf_counter() - began
        free = shutil.disk_usage(directory.root).free if directory.local else None
    said = f"{storage} can be written and read ({1000 * took:.0f} ms)"
    if free is not None and free < LEAST_DISK:
        yield Finding("storage", NOTE, f"{said}, {free / 1e9:.2g} GB free", "Free some, or give another `storage`.")
    else:
        yield Finding("storage", OK, said)


@contextlib.contextmanager
def _probe(storage: str) -> Iterator[RunDirectory]:
    """A folder of its own in the storage, of which nothing is left."""
    from tuning.storage.run_directory import RunDirectory

    directory = RunDirectory(f"{storage.rstrip('/')}/doctor-{uuid.uuid4().hex[:8]}")
    before = not directory.local or Path(directory.root).parent.exists()
    try:
        directory.create()
        yield directory
    finally:
        with contextlib.suppress(TuningError, OSError):
            directory.discard()
            if not before:
                Path(directory.root).parent.rmdir()


def _ray(storage: str) -> Iterator[Finding]:
    from tuning.definition.definition import define
    from tuning.driver.cluster import end_ray, start_ray
    from tuning.driver.log_capture import held_messages
    from tuning.planning.plan import make_plan

    space = {"x": {"type": "float", "low": 0.0, "high": 1.0}}
    plan = make_plan(define({"objective": _nothing, "search_space": space, "mlflow": False}), run_dir=gettempdir())
    began = time.perf_counter()
    with held_messages():
        own = start_ray(plan)
    try:
        import ray

        started = time.perf_counter() - began
        ray.get(ray.remote(_nothing).remote({}), timeout=60)
        ready = time.perf_counter() - began
        nodes = [node for node in ray.nodes() if node["Alive"]]
        cpus = sum(node["Resources"].get("CPU", 0) for node in nodes)
        apart = [] if own else _nodes(nodes, storage)
    finally:
        end_ray()
    where = "starts here" if own else f"answers at {os.environ.get('RAY_ADDRESS', 'its address')}"
    there = f"{amount(len(nodes), 'node')}, {amount(int(cpus), 'CPU')}"
    said = f"Ray {where} in {duration(started)}, its first worker in {duration(ready)}; {there}"
    yield Finding("ray", OK, said)
    for said in apart:
        yield Finding("node", WRONG, said, "Every node needs the same software and folders: docs/cluster.md.")


def _nodes(nodes: Sequence[Mapping[str, object]], storage: str) -> list[str]:
    """What nodes of a cluster lack, with a file of the storage and the current folder for them to see."""
    with _probe(storage) as directory:
        directory.write("probe", b"tuning")
        files = [str(Path.cwd())]
        if directory.local:
            files.append(str(Path(directory.root, "probe").absolute()))
        return list(different_nodes(nodes, files))


def _nothing(config: dict[str, float]) -> float:
    return config.get("x", 0.0)


def _mlflow(storage: str) -> Iterator[Finding]:
    from tuning.storage.names import mask
    from tuning.tracking.copy.sync import quiet_mlflow
    from tuning.tracking.settings import tracking_uri_of
    from tuning.tracking.stores.database import database_file, prepare
    from tuning.tracking.stores.opening import check

    advice = "Runs do not stop for it: `tuning mlflow sync RUN` completes the copy later; `mlflow: false` does without."
    with _probe(storage) as directory:
        uri = tracking_uri_of(directory, None)
        own = database_file(uri)
        began = time.perf_counter()
        try:
            if own is not None and own.parent == Path(directory.root).absolute():
                with quiet_mlflow():
                    prepare(uri)
            else:
                check(uri)
        except Exception as error:
            yield Finding("mlflow", WRONG, f"{mask(uri)}: {one_line(error)}", advice)
            return
        took = time.perf_counter() - began
    shown = "a run's own database" if own is not None and own.parent.name == Path(directory.root).name else mask(uri)
    yield Finding("mlflow", OK, f"{shown} can be used ({duration(took) if took >= 1 else f'{1000 * took:.0f} ms'})")
