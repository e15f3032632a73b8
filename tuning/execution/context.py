"""What a worker keeps while it goes through its studies: definition, space, and the customer at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuning.data.customers import Customer
from tuning.data.loading import Loader, read_always
from tuning.definition.definition import Definition
from tuning.models.base import Family
from tuning.models.entries import own_families
from tuning.planning.model_space import parameters_by_model
from tuning.planning.plan import resolve_space
from tuning.records.ownership import Term
from tuning.runs.plan_file import RunSettings, frozen_definition
from tuning.steps import Step
from tuning.storage.background import BackgroundWriter
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import SCORE, Study, Training
from tuning.study.trial import TrialShape
from tuning.user_code import apply_prepare, load_function


@dataclass
class WorkerContext:
    """What a worker keeps while it goes through its studies: the definition, the space and the customer at hand."""

    directory: RunDirectory
    definition: Definition
    settings: RunSettings
    space: Any
    loader: Loader
    filing: BackgroundWriter
    own: Mapping[str, Family] = field(default_factory=dict)
    objective: Callable[..., Any] | None = None
    prepare: Callable[..., Any] | None = None
    metric_function: Callable[..., Any] | None = None
    _customer: Customer | None = None
    _data: Any = None

    @classmethod
    def open(
        cls,
        directory: RunDirectory,
        term: Term,
        settings: RunSettings,
        definition: Definition | None = None,
        studies: Sequence[Study] = (),
        at_hand: Callable[[str], Any] = read_always,
    ) -> WorkerContext:
        """studies: those to come, whose keyed customers are read together. at_hand: as of a `Loader`."""
        from tuning.evaluation.objective import resolve_objective

        definition = definition or frozen_definition(directory, term)
        own = own_families(definition.models, directory, definition.allow_pickle)
        return cls(
            directory=directory,
            definition=definition,
            settings=settings,
            space=resolve_space(definition, settings.task, settings.metric, own)[0],
            loader=Loader(definition, [study.customer for study in studies], at_hand),
            filing=BackgroundWriter(directory),
            own=own,
            objective=None if definition.objective is None else resolve_objective(definition.objective),
            prepare=load_function(definition.prepare, directory) if definition.prepare else None,
            metric_function=load_function(definition.metric, directory)
            if definition.own_metric and definition.metric
            else None,
        )

    def data(self, customer: Customer) -> Any:
        """The customer's `StudyData`, or its frame for an objective; `CustomerError` when it cannot be used."""
        if self._customer != customer:
            self._customer, self._data = None, None
            self._data = self._load(customer)
            self._customer = customer
        return self._data

    def _load(self, customer: Customer) -> Any:
        if not customer.files:
            return None
        frame = self.loader.read(customer)
        if self.prepare is not None:
            frame = apply_prepare(self.prepare, frame)
        if self.objective is not None:
            return frame
        from tuning.evaluation.study_data import keep_scorable_folds, study_data

        assert self.settings.task is not None
        data = study_data(frame, self.definition, self.settings.task, customer.id, self.own)
        return keep_scorable_folds(data, self.metric(data))

    def metric(self, data: Any) -> Any:
        from tuning.evaluation.metrics import Metric

        return Metric(self.settings.metric, data.task, self.metric_function)

    def simple_first(self, study: Study) -> list[str] | None:
        """The order of families for the rule of one standard error; None where the best score wins."""
        if self.definition.winner != "one_standard_error":
            return None
        return list(parameters_by_model(study.space or self.space))

    def rules(self) -> list[Any]:
        """New stopping rules for one study."""
        return stopping_rules(self.definition, self.settings.mode)

    def training(self, data: Any) -> Training:
        """How trials train on this customer's data."""
        if self.objective is not None:
            return self._objective_training(self.objective, data)
        from tuning.evaluation.study_data import full_steps, train
        from tuning.models.base import SteppedFamily

        def stepped(config: Mapping[str, Any]) -> SteppedFamily | None:
            found = data.family(config["model"])
            return found if isinstance(found, SteppedFamily) else None

        def shape(config: Mapping[str, Any]) -> TrialShape:
            grows = stepped(config) is not None
            return TrialShape(full_steps(config, data), best_prefix=grows, progress=grows)

        metric = self.metric(data)
        return Training(
            start=lambda config, seed, state: train(config, data, metric, seed, state),
            shape=shape,
            frozen=lambda config: found.frozen | {found.length} if (found := stepped(config)) else None,
            length=lambda config: found.length if (found := stepped(config)) else None,
        )

    def _objective_training(self, objective: Callable[..., Any], data: Any) -> Training:
        from tuning.evaluation.objective import steps_of

        name = self.settings.metric

        def start(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
            # A space that came from Ray's notation may be nested, and so is what its function expects.
            return steps_of(objective, self.space.nest(config), name, seed, data, state)

        shape = TrialShape(self.definition.steps, best_prefix=False, progress=True)
        return Training(start=start, shape=lambda _: shape)


def stopping_rules(definition: Definition, mode: Any) -> list[Any]:
    """New stopping rules for one study: the definition's, and the seconds of a comparison. mode: "max" or "min"."""
    from schedulers import stopping

    wanted = dict(definition.stop or {})
    if definition.compare is not None and definition.compare.seconds is not None:
        wanted["study_time"] = {"seconds": definition.compare.seconds}
    return [spec.build(metric=SCORE, mode=mode) for spec in stopping.parse(wanted)]
