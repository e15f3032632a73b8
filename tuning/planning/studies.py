"""The studies of a run: one per customer, or one per algorithm and seed of a comparison; each checked beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from schedulers import SchedulerSpec
from search_spaces import SearchSpace, SpaceError
from search_spaces.algorithms import Algorithm
from tuning.data.customers import Customer
from tuning.data.prepared import OwnCode
from tuning.definition.compared_methods import Method
from tuning.definition.run_spec import RunSpec
from tuning.errors import DefinitionError, PlanError
from tuning.planning import algorithm_notes
from tuning.planning.model_space import check_configurations, check_installed, check_savable
from tuning.planning.pbt_checks import check_population
from tuning.planning.resolution import resolve_space
from tuning.seeds import derive
from tuning.study import warm_start
from tuning.study.study import Study

Spec = TypeVar("Spec", Algorithm, SchedulerSpec)


def make_studies(spec: RunSpec, customers: Sequence[Customer], code: OwnCode) -> tuple[Study, ...]:
    """The studies of some customers; `PlanError` says which of their search spaces cannot be searched."""
    spaces: dict[str, SearchSpace] = {}
    for customer in customers:
        options = customer.options
        if options is None or options.search_space is None or (key := _space_key(options.search_space)) in spaces:
            continue
        try:
            other = spec.definition.model_copy(update={"search_space": options.search_space})
            spaces[key] = resolve_space(other, spec.task, spec.metric, code)[0]
        except (PlanError, DefinitionError) as error:
            raise type(error)(f"customer {customer.id!r}: {error}") from error
    return tuple(study for customer in customers for study in _of_customer(spec, customer, spaces))


def _of_customer(spec: RunSpec, customer: Customer, spaces: dict[str, SearchSpace]) -> list[Study]:
    """A customer's studies: one, or one per algorithm and seed of a comparison.

    Those of a comparison are paired: they share the customer's folds, its start point and, per repetition, their
    seed; only an algorithm that is given twice gets another one, to show what luck does. spaces: by `_space_key`, of
    customers with one of their own.
    """
    definition, options = spec.definition, customer.options
    space, n_trials, resources = spec.space, definition.trials, definition.resources
    if options is not None:
        space = space if options.search_space is None else spaces[_space_key(options.search_space)]
        n_trials, resources = options.trials or n_trials, options.resources or resources
    if definition.compare is None:
        return [
            Study(
                id=customer.id,
                customer=customer,
                algorithm=definition.algorithm,
                scheduler=definition.scheduler,
                seed=derive(definition.seed, "study", customer.id),
                space=space,
                n_trials=n_trials,
                resources=resources,
            )
        ]
    return [
        Study(
            id=compared_id(customer.id, method, number),
            customer=customer,
            algorithm=method.algorithm,
            scheduler=method.scheduler,
            seed=derive(definition.seed, "study", customer.id, number, *([method.repeat] if method.repeat else [])),
            space=space,
            n_trials=n_trials,
            resources=resources,
        )
        for number in range(definition.compare.seeds)
        for method in definition.compare.algorithms
    ]


def compared_id(customer: str, method: Method, number: int) -> str:
    """The id of one study of a comparison."""
    return f"{customer}/{method.label}/{number}"


def _space_key(space: SearchSpace | str) -> str:
    return space if isinstance(space, str) else space.fingerprint()


def check_studies(spec: RunSpec, studies: Sequence[Study], code: OwnCode) -> list[str]:
    """Notes on what the studies cannot do; `PlanError` when something cannot work at all."""
    definition, space = spec.definition, spec.space
    if spec.task is not None and definition.save_models:
        check_savable(code.families)
    schedulers = distinct(study.scheduler for study in studies)
    algorithms = distinct(study.algorithm for study in studies)
    first_with = {id(study.space): study for study in reversed(studies)}  # thousands of customers share a few spaces
    for study in first_with.values():
        try:
            _check_space(spec, study, algorithms, schedulers, code)
        except (PlanError, DefinitionError) as error:
            if study.space is space:
                raise
            raise type(error)(f"customer {study.customer.id!r}: {error}") from error
    own = {study.customer.id: study.space for study in studies if study.space is not space}
    known = sum(entry.score is not None and entry.customer is None for entry in definition.warm_start)
    stepped = definition.objective is None or definition.steps > 1  # else there is nothing to stop
    return [
        *algorithm_notes.losses(algorithms, space),
        *algorithm_notes.ends(algorithms, space, definition.trials),
        *algorithm_notes.random_starts(algorithms, space, definition.trials, known),
        *(algorithm_notes.deaf_pairs((study.algorithm, study.scheduler) for study in studies) if stepped else ()),
        *warm_start.check(spec, own),
    ]


def _check_space(
    spec: RunSpec,
    study: Study,
    algorithms: Sequence[Algorithm],
    schedulers: Sequence[SchedulerSpec],
    code: OwnCode,
) -> None:
    """`PlanError` when a study's search space does not go with its models, the algorithms or the schedulers."""
    space = study.space
    if spec.task is not None:
        check_installed(space)
        options = study.customer.options
        own = None if options is None else options.search_space
        written = (own, spec.definition.search_space, *(entry.search_space for entry in spec.definition.models))
        by_hand = any(each is not None and not isinstance(each, str) for each in written)
        check_configurations(space, code.families, spec.task, by_hand)
    check_population(schedulers, space, code)
    for algorithm in algorithms:
        try:
            algorithm.check(space, study.n_trials)
        except SpaceError as error:
            raise PlanError(f"algorithm {algorithm.name!r}: {error}") from error


def distinct(specs: Iterable[Spec]) -> list[Spec]:
    """Each specification once, in order; thousands of studies share a few."""
    by_identity = {id(spec): spec for spec in specs}
    return list({repr(spec): spec for spec in by_identity.values()}.values())
