"""Settings of a definition that have no effect: a note or a refusal before anything is paid for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from schedulers import SchedulerSpec
from schedulers.direction import worth_of
from schedulers.stopping.study_plateau import StudyPlateauSpec
from schedulers.stopping.target import TargetSpec
from schedulers.stopping.trial_plateau import TrialPlateauSpec
from search_spaces.parameters import Choice, Constant, Parameter
from tuning.basics.wording import amount, name_list
from tuning.data.prepared import OwnCode
from tuning.definition.customer_limits import SIZE_LIMITS
from tuning.definition.definition import Definition
from tuning.definition.options import Options
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError
from tuning.evaluation.metrics import score_range
from tuning.models.base import SteppedFamily
from tuning.models.registry import family as find_family
from tuning.planning.model_space import parameters_by_model

# Of models; an objective is tuned without them.
OF_MODELS = (
    "features",
    "drop",
    "weight",
    "class_weight",
    "positive",
    "dates",
    "min_rows",
    "task",
    "bounds",
    "split",
    "winner",
    "ensemble",
    "pool",
    "final_fit",
    "allow_code",
)
# Of rows; without data there are none.
OF_DATA = ("by", "prepare", "encoding", "csv")
HUGE = 1e300  # a score that no metric comes to


def idle_settings(spec: RunSpec, schedulers: Sequence[SchedulerSpec], code: OwnCode) -> list[str]:
    """Notes on settings that change nothing; `PlanError` where a search with them makes no sense.

    schedulers: of the studies, each once.
    """
    definition = spec.definition
    _check_target(spec)
    _check_known_scores(spec)
    _check_loggers(definition)
    return [
        *_keys_of_the_other_kind(definition),
        *_many_slots(definition),
        *_unsaved_models(definition),
        *_late_rules(spec, code),
        *_known_scores(definition),
        *(note for each in schedulers for note in _late_options(each, longest_trials(spec, code, each.mutates))),
    ]


def longest_trials(spec: RunSpec, code: OwnCode, growing: bool = False) -> dict[str, int]:
    """The most steps that a full trial can have, by model; under "the objective" where one is tuned.

    growing: only of models whose steps are rounds, trees or epochs, not folds.
    """
    if spec.task is None:
        return {"the objective": spec.definition.steps}
    found: dict[str, int] = {}
    for name, parameters in parameters_by_model(spec.space).items():
        family = code.families.get(name) or find_family(name)
        if not isinstance(family, SteppedFamily):
            if not growing:
                found[name] = spec.definition.split.folds
            continue
        lengths = [parameter for parameter in parameters if parameter.name == family.length]
        longest = max((_highest(parameter) for parameter in lengths), default=family.units({}))
        found[name] = math.ceil(longest / family.step_length)
    return found


def _highest(parameter: Parameter) -> float:
    if isinstance(parameter, Choice | Constant):
        values = parameter.values if isinstance(parameter, Choice) else (parameter.value,)
        return max((float(value) for value in values if isinstance(value, int | float)), default=0.0)
    return parameter.high


def _late_options(scheduler: SchedulerSpec, steps: dict[str, int]) -> Iterator[str]:
    """Options of a scheduler that would apply only after the end of a trial."""
    for option, then in (
        ("grace_period", "stopped early"),
        ("perturbation_interval", "changed while it trains"),
        ("burn_in_period", "changed while it trains"),
    ):
        value = getattr(scheduler, option, None)
        too_short = {name: most for name, most in steps.items() if value is not None and value >= most}
        # One step and a grace period of one are the defaults: a plain function has nothing to stop.
        if not too_short or (value == 1 and max(steps.values()) == 1):
            continue
        most = max(too_short.values())
        problem = (
            f"scheduler {scheduler.name}: {option} {value} is not below the {amount(most, 'step')} of a full trial"
        )
        if len(too_short) == len(steps) and scheduler.mutates:
            raise PlanError(f"{problem}, so that none of them is ever {then}. Make it smaller, or the trials longer.")
        models = "" if len(too_short) == len(steps) else f" of {name_list(too_short)}"
        yield f"{problem}{models}, so none of these is ever {then}."


def _known_scores(definition: Definition) -> Iterator[str]:
    """Scores of a warm start that an algorithm cannot learn from."""
    compared = definition.compare
    methods = [definition.algorithm] if compared is None else [method.algorithm for method in compared.algorithms]
    deaf = [method.name for method in methods if "evaluated" not in method.learns]
    if deaf and any(entry.score is not None for entry in definition.warm_start):
        yield f"warm_start: {', '.join(dict.fromkeys(deaf))} learns nothing from known scores."


def _late_rules(spec: RunSpec, code: OwnCode) -> Iterator[str]:
    """Stopping rules that would apply only after the end of a trial or study."""
    compared = spec.definition.compare
    if compared is not None and compared.seconds is not None and "study_time" in (spec.definition.stop or {}):
        yield "stop.study_time: no effect, since `compare.seconds` is the time of a study."
    longest = max(longest_trials(spec, code, growing=True).values(), default=0)
    for rule in spec.stop:
        if isinstance(rule, StudyPlateauSpec) and rule.trials >= spec.definition.trials:
            yield f"stop.study_plateau: no effect, since a study has only {amount(spec.definition.trials, 'trial')}."
        if isinstance(rule, TrialPlateauSpec) and rule.steps >= longest:
            yield f"stop.trial_plateau: no effect, since no trial grows for more than {amount(longest, 'step')}."


def _keys_of_the_other_kind(definition: Definition) -> Iterator[str]:
    """Keys of models beside an objective, of objectives beside models, and of rows where there are none."""
    if definition.data is None and definition.manifest is None:
        limits = [f"limits.{key}" for key in _set_keys(definition.limits, [*SIZE_LIMITS])]
        if unread := [*_set_keys(definition, OF_DATA), *limits]:
            yield f"{', '.join(unread)}: no effect, since there is no `data`."
    idle = _set_keys(definition, OF_MODELS if definition.objective is not None else ("steps",))
    if idle and definition.objective is not None:
        yield f"{', '.join(idle)}: no effect, since an objective is tuned instead of models."
    elif idle:
        yield "steps: no effect, since it is the length of an objective's trials, and models are tuned."


def _set_keys(given: Options, keys: Sequence[str]) -> list[str]:
    """Those of the keys whose value is not the default."""
    fields = type(given).model_fields
    return [key for key in keys if getattr(given, key) != fields[key].get_default(call_default_factory=True)]


def _unsaved_models(definition: Definition) -> Iterator[str]:
    if definition.mlflow.enabled and definition.mlflow.record_models == "all" and not definition.save_models:
        yield "mlflow.record_models: no effect, since `save_models: false` keeps no model that could be logged."


def _many_slots(definition: Definition) -> Iterator[str]:
    """More slots than this machine has CPUs; of a cluster nothing is known here."""
    if os.environ.get("RAY_ADDRESS"):
        return
    cpus = len(os.sched_getaffinity(0))
    slots = definition.slots or cpus
    if slots > cpus:
        here = amount(cpus, "CPU")
        yield f"slots: {amount(slots, 'trial')} at once on the {here} of this machine slow each other down."


def _check_target(spec: RunSpec) -> None:
    """A target that every score reaches, or none."""
    for score in (rule.score for rule in spec.stop if isinstance(rule, TargetSpec)):
        known = spec.task is not None and not spec.definition.own_metric
        ends = score_range(spec.metric) if known else (-math.inf, math.inf)
        worth, worst, best = (worth_of(each, spec.mode if known else "max") for each in (score, *ends))
        if worth > best:
            raise PlanError(
                f"stop.target: {score:g} is {'above' if score > ends[1] else 'below'} {ends[1]:g}, the best that "
                f"{spec.metric} can be. No study would ever reach it; write it in the metric's own units."
            )
        if worth <= worst or abs(score) >= HUGE:
            raise PlanError(
                f"stop.target: {score:g} is what every score of {spec.metric} reaches, or none does: a study would end "
                "at its first full trial, or never by it. Name a score that is worth stopping at."
            )


def _check_loggers(definition: Definition) -> None:
    if "tensorboard" in definition.loggers and find_spec("tensorboardX") is None:
        raise PlanError(
            "loggers: tensorboard needs the package tensorboardX, which is not installed: pip install tensorboardX"
        )


def _check_known_scores(spec: RunSpec) -> None:
    """Scores of a warm start that the metric cannot give, such as an error below 0."""
    if spec.task is None or spec.definition.own_metric:
        return
    low, high = sorted(score_range(spec.metric))
    for number, entry in enumerate(spec.definition.warm_start):
        if entry.score is not None and not low <= entry.score <= high:
            raise PlanError(
                f"warm_start.{number}.score: {entry.score:g} is no score of {spec.metric}, which goes from "
                f"{low:g} to {high:g}. Write it in the metric's own units."
            )
