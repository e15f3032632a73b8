"""Processes that stand ready, with what workers import loaded: those that Ray starts with itself, and the next cell's.

Ray gives them only to an actor without environment variables of its own, and none that has run a task.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from tuning.driver.cluster import own_environment, own_processes

SPARE_S = 0.5  # for which the end of a run waits until Ray has begun to start processes for the next one
LOOK_S = 0.01


@contextlib.contextmanager
def ready_workers() -> Iterator[None]:
    """Let a Tuner that is fitted within the block take processes that stand ready in a Ray of our own.

    Tune makes its actors with environment variables. They are left out where all processes of this Ray have them.
    """
    from ray.tune.execution import tune_controller

    tunes = tune_controller._ActorClassCache
    tune_controller._ActorClassCache = lambda: _ActorClasses(tunes().get)
    try:
        yield
    finally:
        tune_controller._ActorClassCache = tunes


class _ActorClasses:
    """In place of Tune's own, which it asks where Ray's processes lack a variable."""

    def __init__(self, tunes: Callable[[type], object]) -> None:
        self._tunes = tunes
        self._plain: dict[type, object] = {}

    def get(self, trainable: type) -> object:
        import ray
        from ray.tune.execution.class_cache import DEFAULT_ENV_VARS, ENV_VARS_TO_PROPAGATE

        here = {name: os.environ[name] for name in ENV_VARS_TO_PROPAGATE if name in os.environ}
        if not (DEFAULT_ENV_VARS | here).items() <= own_environment().items():
            return self._tunes(trainable)
        if trainable not in self._plain:
            self._plain[trainable] = ray.remote(trainable)
        return self._plain[trainable]


def start_workers(count: int) -> None:
    """Let a Ray of our own start as many processes for the next run, since those of a run end with it.

    An actor that is dropped before its process is up leaves it to the next one.
    """
    import ray

    if not own_environment():
        return
    with contextlib.suppress(Exception):  # Ray has ended; the next run says so
        before = own_processes()
        spare = ray.remote(num_cpus=1, max_restarts=0)(_Spare)
        spares = [spare.remote() for _ in range(count)]
        until = time.monotonic() + SPARE_S
        while len(own_processes() - before) < count and time.monotonic() < until:
            time.sleep(LOOK_S)
        for each in spares:
            ray.kill(each)


class _Spare:
    """An actor that is not made."""
