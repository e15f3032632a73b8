"""Notes of a plan on this machine: its CPUs, its folders, and what hides a package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tuning.definition.definition import Definition
from tuning.notes import Note, PlanCode

MANY_FOLDERS = 10_000  # trials with a folder each
#: Packages that a run imports.
PACKAGES = ("tuning", "search_spaces", "schedulers", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "optuna", "ray")


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
