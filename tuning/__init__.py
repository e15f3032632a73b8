"""The best model and hyperparameters for every customer: thousands of isolated studies in one Ray Tune run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuning.driver.runner import TuneRunner, tune
    from tuning.runs.results import RunResult

__all__ = ["RunResult", "TuneRunner", "tune"]
_HOMES = {"TuneRunner": "tuning.driver.runner", "RunResult": "tuning.runs.results", "tune": "tuning.driver.runner"}


def __getattr__(name: str) -> object:
    """Public names are imported when they are first used: `import tuning` costs next to nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tuning-service")
    if name not in _HOMES:
        raise AttributeError(f"module 'tuning' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, for an editor or notebook; the packages beneath are for those who change them."""
    return [*__all__, "__doc__", "__file__", "__name__", "__path__", "__version__"]
