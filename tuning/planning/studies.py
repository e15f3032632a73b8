"""The studies of a run: one per customer, or one per algorithm and seed of a comparison; each checked beforehand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schedulers import SchedulerSpec
from search_spaces import SearchSpace, SpaceError
from search_spaces.algorithms import Algorithm
from tuning.basics.columnar import (
    ArrowColumn,
    Columnar,
    DerivedColumn,
    DictionaryColumn,
    FieldColumn,
    column_of,
    constant,
)
from tuning.basics.seeds import derive
from tuning.basics.wording import did_you_mean
from tuning.data.customers import Customers, places_of
from tuning.definition.compared_methods import Method
from tuning.definition.definition import Definition
from tuning.definition.options import CustomerOptions
from tuning.definition.run_spec import RunSpec
from tuning.errors import DefinitionError, PlanError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.evaluation.objective import takes_state
from tuning.models.base import SteppedFamily
from tuning.models.registry import family as find_family
from tuning.notes import Note
from tuning.planning import search_checks
from tuning.planning.model_process import ModelProcess
from tuning.planning.model_space import check_configurations, check_installed, check_savable, parameters_by_model
from tuning.planning.resolution import resolve_space
from tuning.records.schema import MODEL, Config
from tuning.study import warm_start
from tuning.study.customer_data import OwnCode
from tuning.study.mutations import mutations
from tuning.study.study import STUDY_NAME, Study, StudyTable, budgets, customers_of

Spec = TypeVar("Spec", Algorithm, SchedulerSpec)
#: What is known of a study: the configuration that is fitted in place of a search, or those that a search tries first.
Known: TypeAlias = FixedConfiguration | Sequence[Config]
#: By customer a configuration that is fitted in place of a search, or the customer's studies by name.
Fixed: TypeAlias = Mapping[str, FixedConfiguration | Mapping[str, Known]]
NONE_FIXED: Fixed = {}


def make_studies(spec: RunSpec, customers: Customers, code: OwnCode, fixed: Fixed = NONE_FIXED) -> StudyTable:
    """The studies of some customers: one each, those that `fixed` names, or one per algorithm and seed of a comparison.

    Studies of a comparison are paired: they share the customer's folds, its start point and, per repetition, their
    seed. An algorithm that is named twice gets another seed the second time, to show what luck does. `PlanError` says
    which customer's search space cannot be searched.
    """
    definition = spec.definition
    space_of = _spaces(spec, customers, code)
    compared = definition.compare
    if compared is None:
        ids, known = customers.columns["id"], constant((), len(customers))
        if fixed:
            customers, ids, known = _named_studies(customers, fixed)
        columns: dict[str, FieldColumn] = {
            "id": ids,
            "algorithm": constant(definition.algorithm, len(customers)),
            "scheduler": constant(definition.scheduler, len(customers)),
            "seed": DerivedColumn(partial(derive, definition.seed, "study"), ids),
        }
    else:
        rounds = [(number, method) for number in range(compared.seeds) for method in compared.algorithms]
        each = [(name, *one) for name in customers.columns["id"].values(0, len(customers)) for one in rounds]
        columns = {
            "id": column_of([compared_id(name, method, number) for name, number, method in each]),
            "algorithm": DictionaryColumn.of([method.algorithm for _, _, method in each]),
            "scheduler": DictionaryColumn.of([method.scheduler for _, _, method in each]),
            "seed": column_of([_compared_seed(definition.seed, *one) for one in each]),
        }
        customers = customers.take(np.repeat(np.arange(len(customers)), len(rounds)))
        known = constant((), len(customers))
    options = customers.shared("options").map(lambda own: own or CustomerOptions())
    configurations = known.map(lambda each: each if isinstance(each, FixedConfiguration) else None)
    columns |= {
        "customer": customers,
        "fixed": configurations,
        "points_to_evaluate": known.map(lambda each: () if isinstance(each, FixedConfiguration) else each),
        "space": options.map(lambda own: space_of(own.search_space)),
        "n_trials": budgets(options, configurations, definition.trials),
        "resources": options.map(lambda own: own.resources or definition.resources),
    }
    return Columnar(Study, len(customers), columns)


def pool_only_studies(spec: RunSpec, customers: Customers, studies: StudyTable, code: OwnCode) -> StudyTable | None:
    """Return a study, which is never run, of each customer that has none of these; None without such customers.

    `fixed` gives a customer none where the run has nothing to do for it, and only its pool takes the rows.
    """
    planned = pc.is_in(customers.texts("id"), value_set=customers_of(studies).texts("id"))
    others = customers.take(np.flatnonzero(~np.asarray(planned)))
    return make_studies(spec, others, code) if len(others) else None


def at_places(studies: StudyTable, customers: Customers) -> StudyTable:
    """Return studies after their customers' rows have been given a place."""
    places = places_of(customers_of(studies).texts("id"), customers)
    return studies.with_columns(customer=customers.take(places))


def _named_studies(customers: Customers, fixed: Fixed) -> tuple[Customers, FieldColumn, DictionaryColumn]:
    """Return the customer and the id of each study, and what is known of it."""
    found: list[tuple[int, str, Known]] = []
    for place, customer in enumerate(customers.texts("id").to_pylist()):
        given = fixed.get(customer, ())
        named = given if isinstance(given, Mapping) else {"": given}
        for name, known in named.items():
            of_study = known if isinstance(known, FixedConfiguration) else list(known) or ()
            found.append((place, study_id(customer, name), of_study))
    places, ids, of_each = ([each[field] for each in found] for field in range(3))
    return (
        customers.take(np.array(places, dtype=np.int64)),
        ArrowColumn(pa.array(ids, pa.string())),
        DictionaryColumn.of(of_each),
    )


def study_id(customer: str, name: str) -> str:
    """Return the id of a customer's study; the customer's own where the study has no name."""
    return f"{customer}{STUDY_NAME}{name}" if name else customer


def check_fixed(definition: Definition, fixed: Fixed, known: Collection[str]) -> None:
    """Raise `PlanError` where a run cannot have fixed configurations. known: ids of all customers."""
    if fixed and (definition.objective is not None or definition.compare is not None):
        what = "an objective has no models" if definition.objective is not None else "a comparison is one of searches"
        raise PlanError(f"fixed: {what}, so no configuration can be fitted in place of a search.")
    for customer in fixed:
        if customer not in known:
            raise PlanError(
                f"fixed: there is no customer {customer!r} among {len(known)}.{did_you_mean(customer, known)}"
            )


def _compared_seed(seed: int, customer: str, number: int, method: Method) -> int:
    return derive(seed, "study", customer, number, *([method.repeat] if method.repeat else []))


def _spaces(spec: RunSpec, customers: Customers, code: OwnCode) -> Callable[[SearchSpace | str | None], SearchSpace]:
    """Return a function from a customer's own search space, or None, to the space of the study."""
    found: dict[str, SearchSpace] = {}
    for customer in customers.first_of_each("options"):
        own = None if customer.options is None else customer.options.search_space
        if own is None or _space_key(own) in found:
            continue
        try:
            other = spec.definition.model_copy(update={"search_space": own})
            found[_space_key(own)] = resolve_space(other, spec.task, spec.metric, code)[0]
        except (PlanError, DefinitionError) as error:
            raise type(error)(f"customer {customer.id!r}: {error}") from error
    return lambda own: spec.space if own is None else found[_space_key(own)]


def compared_id(customer: str, method: Method, number: int) -> str:
    """Return the id of one study of a comparison."""
    return STUDY_NAME.join((customer, method.label, str(number)))


def _space_key(space: SearchSpace | str) -> str:
    return space if isinstance(space, str) else space.fingerprint()


def check_studies(spec: RunSpec, studies: StudyTable, code: OwnCode, process: ModelProcess) -> Iterator[Note]:
    """Return notes on what the studies cannot do; `PlanError` when they cannot run at all.

    process: where models are tried.
    """
    definition, space = spec.definition, spec.space
    if spec.task is not None and definition.save_models and studies:
        check_savable(code.families, process)
    searches = studies.take(~studies.present("fixed"))
    schedulers = distinct(study.scheduler for study in searches.first_of_each("scheduler"))
    algorithms = distinct(study.algorithm for study in searches.first_of_each("algorithm"))
    for study in searches.first_of_each("space"):
        try:
            _check_space(spec, study, algorithms, schedulers, code, process)
        except (PlanError, DefinitionError) as error:
            if study.space is space:
                raise
            raise type(error)(f"customer {study.customer.id!r}: {error}") from error
    yield from process.notes
    if not searches:
        return
    others = searches.take(searches.shared("space").test(lambda each: each is not space))
    filled = warm_start.check(spec, {study.customer.id: study.space for study in others})
    yield from filled if "algorithm" in definition.model_fields_set or definition.compare is not None else ()
    if not filled:  # else nothing is searched, also not at random
        known = sum(entry.score is not None and entry.customer is None for entry in definition.warm_start)
        yield from search_checks.random_starts(algorithms, space, definition.trials, known)
    pairs = ((study.algorithm, study.scheduler) for study in searches.first_of_each("algorithm", "scheduler"))
    yield from search_checks.deaf_algorithms(definition, algorithms, pairs)
    yield from search_checks.cut_grids(algorithms, space, definition.trials)
    yield from search_checks.late_options(spec, schedulers, code)


def _check_space(
    spec: RunSpec,
    study: Study,
    algorithms: Sequence[Algorithm],
    schedulers: Sequence[SchedulerSpec],
    code: OwnCode,
    process: ModelProcess,
) -> None:
    """Raise `PlanError` when a study's search space does not go with its models, the algorithms or the schedulers."""
    space = study.space
    if spec.task is not None:
        check_installed(space)
        options = study.customer.options
        own = None if options is None else options.search_space
        written = (own, spec.definition.search_space, *(entry.search_space for entry in spec.definition.models))
        by_hand = any(each is not None and not isinstance(each, str) for each in written)
        check_configurations(space, code.families, spec.task, by_hand, process)
    _check_population(schedulers, space, code)
    for algorithm in algorithms:
        try:
            algorithm.check(space, study.n_trials)
        except SpaceError as error:
            raise PlanError(f"algorithm {algorithm.name!r}: {error}") from error


def _check_population(specs: Sequence[SchedulerSpec], space: SearchSpace, code: OwnCode) -> None:
    """`PlanError` where a population's trials cannot take over models, or nothing can change while a model trains.

    specs: schedulers of the studies, each once.
    """
    for spec in specs:
        if not spec.needs_state:
            continue
        if code.objective is not None and not takes_state(code.objective):
            raise PlanError(
                f"scheduler {spec.name!r} copies models between trials, and the objective cannot continue from a "
                "copy: it has no parameter `state` (docs/objectives.md). Add it, or use another scheduler, such as "
                "asha."
            )
        names = parameters_by_model(space)
        cohorts: list[tuple[dict[str, object], Collection[str]]] = [({MODEL: name}, ()) for name in names] or [({}, ())]
        if code.objective is None:
            found = {name: code.families.get(name) or find_family(name) for name in names}
            stepped = {name: family for name, family in found.items() if isinstance(family, SteppedFamily)}
            cohorts = [({MODEL: name}, family.frozen | {family.length}) for name, family in stepped.items()]
        if not any(spec.usable(mutations(space, config, frozen, MODEL)) for config, frozen in cohorts):
            what = "number" if spec.name == "pb2" else "hyperparameter"
            raise PlanError(
                f"scheduler {spec.name!r} changes a {what} while a model trains, and this search space has none that "
                "could change (models that train at once, without steps, cannot). Use another scheduler, such as asha."
            )


def distinct(specs: Iterable[Spec]) -> list[Spec]:
    """Return each specification once, in order; thousands of studies share a few."""
    by_identity = {id(spec): spec for spec in specs}
    return list({repr(spec): spec for spec in by_identity.values()}.values())
