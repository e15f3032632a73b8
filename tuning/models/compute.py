"""What training may use of its machine, as its study's `resources` say: so many threads, and whether a GPU.

OpenMP and BLAS libraries have a number of threads for the whole process. Those that are loaded are told by
threadpoolctl, those that are not by environment variables, which they read when they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from tuning.basics.environment import environment_set, thread_environment

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@dataclass(frozen=True, slots=True)
class Compute:
    """What one trial trains with. gpu: whether it has a GPU or a share of one."""

    threads: int = 1
    gpu: bool = False


_GIVEN = [Compute()]


@contextmanager
def trains_with(compute: Compute) -> Iterator[None]:
    """Meanwhile this process trains with this, the user's own code too."""
    _GIVEN.append(compute)
    try:
        with nullcontext() if compute.threads == 1 else _threads_set(compute.threads):
            yield
    finally:
        _GIVEN.remove(compute)


def threads() -> int:
    """Return how many threads a model trains and predicts with now."""
    return _GIVEN[-1].threads


def on_gpu() -> bool:
    """Return whether models that can train on a GPU do so now."""
    return _GIVEN[-1].gpu


def limited_threads() -> AbstractContextManager[object]:
    """Around what uses OpenMP or BLAS: as many threads as `threads` says, where the environment does not say so.

    With two threads on two busy cores, boosting by histograms was seen to take twenty times as long.
    """
    controller = _others(threads())
    return nullcontext() if controller is None else controller.limit(limits=threads())


@contextmanager
def _threads_set(count: int) -> Iterator[None]:
    from threadpoolctl import threadpool_limits

    try:
        with environment_set(thread_environment(count)), threadpool_limits(count):
            yield
    finally:
        _others.cache_clear()  # what was loaded meanwhile has kept the number


@cache
def _others(count: int) -> ThreadpoolController | None:
    """Return what sets the number of threads of the loaded libraries; None when all have this one already."""
    from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController()
    return controller if any(library["num_threads"] != count for library in controller.info()) else None
