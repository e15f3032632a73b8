"""Modules of the user's that are called like packages which a run imports."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("tuning", "search_spaces", "schedulers", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "optuna", "ray")


def shadows() -> Iterator[str]:
    """A sentence on each in the current folder, which Ray puts first in the import paths of workers."""
    for name in PACKAGES:
        spec = find_spec(name)
        installed = Path(spec.origin).resolve() if spec is not None and spec.origin is not None else None
        for path in (Path.cwd() / name / "__init__.py", Path.cwd() / f"{name}.py"):
            if path.is_file() and path.resolve() != installed:
                shown = f"{name}/" if path.name == "__init__.py" else path.name
                yield (
                    f"{shown} in the current folder has the name of a package. Workers here import the package; those "
                    "of a cluster at RAY_ADDRESS would import yours: rename it."
                )
