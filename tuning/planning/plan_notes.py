"""Notes and refusals of a plan by what is known without reading rows: of its data, its pool, machine and folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tuning.basics.columnar import Columnar
from tuning.data.customers import Customers, about_rows, one_each
from tuning.data.files import left_out
from tuning.data.keys import look_alikes
from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.errors import PlanError
from tuning.models.registry import families
from tuning.notes import Note, PlanCode, PoolCode
from tuning.planning.capacity import memory, nvidia_gpus, other_gpus, own_ray
from tuning.planning.worker_groups import groups_in
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import StudyTable, customers_of

AUTO, ON, OFF = "auto", "on", "off"
#: For `pool: auto`: with 2,000 rows each a pool gained nothing any more (docs/decisions/the-answer.md).
AUTO_CUSTOMERS, AUTO_MEDIAN_ROWS = 20, 1_000.0
MANY_FOLDERS = 10_000  # trials with a folder each
MOST_NAMED = 5  # customers or files in a note
#: Packages that a run imports.
PACKAGES = ("tuning", "search_spaces", "schedulers", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "optuna", "ray")


def data_notes(definition: Definition, customers: Customers) -> Iterator[Note]:
    """Return notes on what is known of the data without reading its rows."""
    if isinstance(definition.data, str | list | tuple) and (names := left_out(definition.data)):
        yield PlanCode.FILES_LEFT_OUT(files=len(names), first=names[:MOST_NAMED])
    if definition.by:
        tables = len(customers.take(customers.present("key")).first_of_each("table"))
        if tables > 1:
            yield PlanCode.TABLES_APART(tables=tables)
    if alike := look_alikes(customers.texts("id")):
        pairs = [each[:MOST_NAMED] for each in alike[:MOST_NAMED]]
        yield PlanCode.LOOK_ALIKES(groups=len(alike), pairs=pairs)
    few = customers.take(customers.numbers("rows", missing=definition.min_rows) < definition.min_rows)
    if definition.objective is None and len(few):
        first = few.texts("id")[:MOST_NAMED].to_pylist()
        yield PlanCode.CUSTOMERS_TOO_SMALL(customers=len(few), least=definition.min_rows, first=first)


def machine_notes(definition: Definition, trials: int) -> Iterator[Note]:
    """Return notes on the machine and on what is written to it. trials: of all studies."""
    if definition.loggers and trials > MANY_FOLDERS:
        yield PlanCode.MANY_FOLDERS(trials=trials)
    if os.environ.get("RAY_ADDRESS"):
        yield from map(PlanCode.SHADOWED_PACKAGE, shadowed_packages())
    elif (definition.slots or 1) > (cpus := len(os.sched_getaffinity(0))):
        yield PlanCode.MANY_SLOTS(slots=definition.slots, cpus=cpus)


def shadowed_packages() -> Iterator[str]:
    """Return modules in the current folder with the name of a package.

    Ray puts the folder first in the import paths of a cluster's workers; workers of our own Ray import the package.
    """
    for name in PACKAGES:
        spec = find_spec(name)
        installed = Path(spec.origin).resolve() if spec is not None and spec.origin is not None else None
        for path in (Path.cwd() / name / "__init__.py", Path.cwd() / f"{name}.py"):
            if path.is_file() and path.resolve() != installed:
                yield f"{name}/" if path.name == "__init__.py" else path.name


def too_large(definition: Definition, studies: StudyTable, slots: int) -> Iterator[Note]:
    """Return notes on resources that a Ray of our own on this machine would not have; of a cluster nothing is known.

    They are no refusals: the plan may be meant for a larger machine.
    """
    for resources in _asked(studies) if own_ray() else ():
        for excess in _excess(resources, slots):
            names = []
            if resources != definition.resources:
                some = studies.take(studies.shared("resources").test(resources.__eq__))
                names = customers_of(some).texts("id").unique().to_pylist()
            yield replace(excess, values={**excess.values, "customers": names[:MOST_NAMED]})


def check_own_machine(definition: Definition, studies: StudyTable, slots: int) -> None:
    """Raise `PlanError` where all trials ask for what a Ray of our own will not have, before it starts.

    If only some customers ask for it, they get that as their reason.
    """
    excesses = {resources: next(_excess(resources, slots), None) for resources in _asked(studies) if own_ray()}
    if why := excesses.get(definition.resources) or (all(excesses.values()) and next(iter(excesses.values()), None)):
        raise PlanError(str(why))


def check_shared_folder(definition: Definition, studies: StudyTable, folder: str | Path) -> None:
    """Raise `PlanError` for models with actors that read rows from a folder, where the run is on object storage."""
    if definition.objective is not None:
        return
    for study in studies.first_of_each("space"):
        for name in groups_in(study.space):
            if families()[name].groups_read_files and not (directory := RunDirectory(folder)).local:
                raise PlanError(
                    f"customer {study.customer.id!r}: the actors of {name!r} read their rows from the run directory, "
                    f"{directory.shown}, which must be in a folder that all nodes share; give one, or take `xgboost` "
                    "with `actors`."
                )


def _asked(studies: StudyTable) -> Iterator[Resources]:
    return iter(dict.fromkeys(study.resources for study in studies.first_of_each("resources")))


def _excess(resources: Resources, slots: int) -> Iterator[Note]:
    asked = {"cpus": resources.cpus, "gpus": 0 if other_gpus() else resources.gpus}
    asked |= {f"custom.{name}": amount for name, amount in resources.custom.items()}
    asked["memory_gb"] = resources.memory_gb or 0
    have = {"cpus": slots, "gpus": nvidia_gpus(), "memory_gb": round(memory() / 1e9, 1)}
    for name, amount in asked.items():
        if amount > have.get(name, 0):
            yield PlanCode.RESOURCES_TOO_LARGE(name, asked=amount, have=have.get(name, 0), customers=[])


def why_no_pool(definition: Definition, studies: StudyTable, pool_only: StudyTable | None) -> Note | None:
    """Return why a run has not the pool that its definition asks for; None where it has one.

    studies, pool_only: see `Plan`. `PlanError` where it demands one that nobody could ask.
    """
    if not definition.wants_ensembles:
        if definition.pool == AUTO:
            return PoolCode.POOL_WITHOUT_ENSEMBLES()
        raise PlanError(
            "pool: on asks for a model of all customers' rows as a member of each one's ensemble, and there are none "
            "with `compare`, `objective`, `ensemble: none` or `winner: one_standard_error`. Use `pool: off`."
        )
    fixed = studies.shared("fixed")
    searches = fixed.test(lambda each: each is None)
    is_member = fixed.test(lambda each: each is not None and each.pooled).any()
    if not (searches.any() or is_member):
        return PoolCode.POOL_ALL_FIXED()
    if definition.pool == ON:
        return None
    asking = studies if is_member else studies.take(searches)
    customers = one_each(customers_of(asking if pool_only is None else Columnar.joined([asking, pool_only])))
    if len(customers) < AUTO_CUSTOMERS:
        return PoolCode.POOL_SMALL_RUN(customers=len(customers), least=AUTO_CUSTOMERS)
    if float(np.median(about_rows(customers))) > AUTO_MEDIAN_ROWS:
        return PoolCode.POOL_MANY_ROWS(rows=int(AUTO_MEDIAN_ROWS))
    return None
