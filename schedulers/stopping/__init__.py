"""When a trial or a study has gone on for long enough, whatever the scheduler: one file per rule.

    rules = schedulers.stopping.parse({"target": 0.95, "study_plateau": {"trials": 20}})
    built = [rule.build(metric="auc", mode="max") for rule in rules]

A built rule has the methods of a Ray `Stopper`, for one study, and can say why: `rule(trial_id, result)` ends a trial,
`rule.stop_all()` the study. Ray is not imported for it.
"""

from __future__ import annotations

from schedulers.stopping.registry import names, parse
from schedulers.stopping.rule import RuleSpec

__all__ = ["RuleSpec", "names", "parse"]
