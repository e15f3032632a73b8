"""Whether a search can do what its definition asks: refusals, and notes on what it will not do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec

from schedulers import SchedulerSpec
from schedulers.direction import worth_of
from schedulers.stopping.target import TargetSpec
from search_spaces import SearchSpace
from search_spaces.algorithms import Algorithm
from search_spaces.parameters import Choice, Constant, Parameter
from tuning.basics.wording import amount
from tuning.definition.definition import Definition
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError
from tuning.evaluation.metrics import score_range
from tuning.models.base import SteppedFamily
from tuning.models.registry import family as find_family
from tuning.notes import Note, PlanCode
from tuning.planning.model_space import parameters_by_model
from tuning.study.customer_data import OwnCode

HUGE = 1e300  # a score that no metric comes to


def check_settings(spec: RunSpec) -> None:
    """Raise `PlanError` for a target, a known score or a logger that cannot be."""
    _check_target(spec)
    _check_known_scores(spec)
    if "tensorboard" in spec.definition.loggers and find_spec("tensorboardX") is None:
        raise PlanError(
            "loggers: tensorboard needs the package tensorboardX, which is not installed: pip install tensorboardX"
        )


def cut_grids(algorithms: Sequence[Algorithm], space: SearchSpace, n_trials: int) -> Iterator[Note]:
    """Return a note for each grid that a study does not get through."""
    for algorithm in algorithms:
        if algorithm.name == "grid" and (size := algorithm.count(space)) is not None and size > n_trials:
            yield PlanCode.GRID_CUT(algorithm.name, configurations=size, trials=n_trials)


def random_starts(algorithms: Iterable[Algorithm], space: SearchSpace, n_trials: int, known: int = 0) -> Iterator[Note]:
    """Return a note for each algorithm with a random start as long as a study. known: points with a score.

    None where the space has no more configurations than the start: a longer study would try nothing else.
    """
    most = math.inf if space.points is None else space.points.size
    for algorithm in algorithms:
        if n_trials <= (start := algorithm.startup(space, n_trials) - known) < most:
            yield PlanCode.RANDOM_SEARCH(
                algorithm.name, start=start, trials=n_trials, option=algorithm.startup_option or ""
            )


def deaf_algorithms(
    definition: Definition, algorithms: Sequence[Algorithm], pairs: Iterable[tuple[Algorithm, SchedulerSpec]]
) -> Iterator[Note]:
    """Return notes on algorithms that learn nothing from most trials, or from the scores of a warm start.

    pairs: an algorithm and its scheduler, of each kind of study.
    """
    stepped = definition.objective is None or definition.steps > 1  # else there is nothing to stop
    for algorithm, scheduler in pairs:
        if stepped and algorithm.full_trials_only and scheduler.stops:
            options = ", ".join(f"{name}: {value}" for name, value in algorithm.to_dict().items() if name != "name")
            yield PlanCode.DEAF_TO_STOPPED(algorithm.name, options=options, scheduler=scheduler.name)
    if any(entry.score is not None for entry in definition.warm_start):
        for algorithm in algorithms:
            if "evaluated" not in algorithm.learns:
                yield PlanCode.DEAF_TO_SCORES(algorithm.name)


def late_options(spec: RunSpec, schedulers: Iterable[SchedulerSpec], code: OwnCode) -> Iterator[Note]:
    """Return notes on options of schedulers that apply only after a trial's end; `PlanError` for a population's."""
    for scheduler in schedulers:
        steps = longest_trials(spec, code, scheduler.mutates)
        for option, then in (
            ("grace_period", "stopped early"),
            ("perturbation_interval", "changed while it trains"),
            ("burn_in_period", "changed while it trains"),
        ):
            value = getattr(scheduler, option, None)
            short = {name: most for name, most in steps.items() if value is not None and value >= most}
            # One step and a grace period of one are the defaults: a plain function has nothing to stop.
            if not short or (value == 1 and max(steps.values()) == 1):
                continue
            most, everywhere = max(short.values()), len(short) == len(steps)
            if everywhere and scheduler.mutates:
                raise PlanError(
                    f"scheduler {scheduler.name}: {option} {value} is not below the {amount(most, 'step')} of a full "
                    f"trial, so that none of them is ever {then}. Make it smaller, or the trials longer."
                )
            models = [] if everywhere else list(short)
            yield PlanCode.NEVER_IN_TIME(
                scheduler.name, option=option, value=value, steps=most, models=models, then=then
            )


def longest_trials(spec: RunSpec, code: OwnCode, growing: bool = False) -> dict[str, int]:
    """Return the most steps that a full trial can have, by model; under "the objective" where one is tuned.

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


def _check_target(spec: RunSpec) -> None:
    """Raise `PlanError` for a target that every score reaches, or none."""
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


def _check_known_scores(spec: RunSpec) -> None:
    """Raise `PlanError` for scores of a warm start that the metric cannot give, such as an error below 0."""
    if spec.task is None or spec.definition.own_metric:
        return
    low, high = sorted(score_range(spec.metric))
    for number, entry in enumerate(spec.definition.warm_start):
        if entry.score is not None and not low <= entry.score <= high:
            raise PlanError(
                f"warm_start.{number}.score: {entry.score:g} is no score of {spec.metric}, which goes from "
                f"{low:g} to {high:g}. Write it in the metric's own units."
            )
