"""How long a trial may live: one file per scheduler, each a frozen spec that builds a scheduler of a study::

    spec = schedulers.parse({"name": "asha", "reduction_factor": 3})
    schedulers.check(spec, "optuna", ["random"])           # None, or the sentence of refusal
    scheduler = spec.build(metric="auc", mode="max", max_steps=27, seed=0)

Specs are plain values; Ray is imported when the first one is built that refines Ray's. Every built scheduler belongs to
one study (and one model family in it), draws from its own seed only and can say why it stopped a trial:
`scheduler.reason(trial_id)`.
"""

from __future__ import annotations

from schedulers import stopping
from schedulers.compatibility import check
from schedulers.errors import SchedulerError
from schedulers.mutation import Choices, Mutation, Mutations, Range
from schedulers.registry import names, parse
from schedulers.spec import SchedulerSpec

__all__ = [
    "Choices",
    "Mutation",
    "Mutations",
    "Range",
    "SchedulerError",
    "SchedulerSpec",
    "check",
    "names",
    "parse",
    "stopping",
]
