"""A study whose trials are compared between places of work: its space, its training, and what of its records counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from search_spaces import Choice, Float, Int, SearchSpace
from tuning.records.figures import TRIAL_FIGURES
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.study import StudyTraining
from tuning.study.trial import TrialShape

STEPS = 9
#: What a clock or the place of work decides, and not the study.
CLOCK = {each.name for each in TRIAL_FIGURES if each.clock} | {"worker"}
SPACE = SearchSpace(
    [
        Choice("model", ["stepped", "folds"], default="stepped"),
        Float("x", 0.0, 1.0, default=0.2),
        Int("n", 3, STEPS, default=5, when={"model": "stepped"}),
    ]
)

Start = Callable[[Mapping[str, Any], int, Any], Iterator[Step]]


def models(start: Start) -> StudyTraining:
    """Two families: one that grows step by step, as long as a parameter says, and one whose steps are folds."""

    def stepped(config: Mapping[str, Any]) -> bool:
        return bool(config["model"] == "stepped")

    def shape(config: Mapping[str, Any]) -> TrialShape:
        grows = stepped(config)
        return TrialShape(int(config["n"]) if grows else 3, best_prefix=grows, progress=grows)

    return StudyTraining(
        start=start,
        shape=shape,
        frozen=lambda config: {"n"} if stepped(config) else None,
        longest=lambda config: {**config, "n": STEPS} if stepped(config) else config,
    )


def objective(start: Start) -> StudyTraining:
    """A user's own generator: its last step counts."""
    return StudyTraining(start=start, shape=lambda _: TrialShape(STEPS, best_prefix=False, progress=True))


def told(record: TrialRecord) -> dict[str, str]:
    """All of a record that a clock has no part in, as text: a score that is not a number is not equal to itself."""
    found = {field.name: getattr(record, field.name) for field in fields(record) if field.name not in CLOCK}
    found["steps"] = [(step.step, step.score, dict(step.metrics)) for step in record.steps]
    found["error"] = record.error and record.error.strip().splitlines()[-1]  # each place has its own stack
    return {key: repr(value) for key, value in json.loads(json.dumps(found, default=str)).items()}
