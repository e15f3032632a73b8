"""Callbacks that Tune finds by an environment variable.

A callback in a `RunConfig` is counted by `Tuner.fit` for Ray's usage statistics, and to tell whose it is, that imports
MLflow and other libraries: most of a second. What the variable `RAY_TUNE_CALLBACKS` names is used alike, and not
counted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from ray import tune
from ray.tune.callback import CallbackList
from ray.tune.constants import RAY_TUNE_CALLBACKS_ENV_VAR

from tuning.basics.environment import environment_set

_current: list[tune.Callback] = []


class HandedOver(CallbackList):
    """Those of `handed_over`, as one; Tune makes it."""

    def __init__(self) -> None:
        super().__init__(list(_current))


@contextlib.contextmanager
def handed_over(callbacks: Sequence[tune.Callback]) -> Iterator[None]:
    """Within it, the Tuner that is fitted in this process has these callbacks, beside those that the user has set."""
    before = os.environ.get(RAY_TUNE_CALLBACKS_ENV_VAR)
    own = f"{HandedOver.__module__}.{HandedOver.__qualname__}"
    _current[:] = callbacks
    try:
        with environment_set({RAY_TUNE_CALLBACKS_ENV_VAR: f"{before},{own}" if before else own}):
            yield
    finally:
        _current.clear()
