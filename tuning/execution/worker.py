"""The worker: what every job of a run has at hand, opened once and closed whatever happens.

A job is a function of it: a study (`study_run.run_study`), a last fit (`study_run.conclude_study`), a trial of a spread
study (`spread.worker`), the pool (`pool.train_pool`). It tells its worker what it turns to, and the worker notes
that for the case of a crash and sets the limits of time.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tuning.basics.timing import USUAL, Timing, hang_seconds
from tuning.data.customers import Customer
from tuning.data.file_access import check_readable
from tuning.data.loading import Loader
from tuning.data.partition import FOLDER
from tuning.definition.baselines import configuration_of
from tuning.definition.run_spec import RunSpec
from tuning.errors import CustomerError
from tuning.evaluation.metrics import Metric
from tuning.evaluation.objective import PortableFunction, reads_files, steps_of
from tuning.evaluation.study_data import StudyData, full_steps, parameters_of, train
from tuning.evaluation.winner import SimpleFirst
from tuning.execution.crash_log import CONCLUDING, LOADING, STARTING, Crash, ProgressMarker
from tuning.execution.limits import MemoryLimit, TimeLimits, allocated, loading_grace, study_limit
from tuning.models.base import SteppedFamily
from tuning.models.registry import families
from tuning.models.trainers.training import Home
from tuning.notes import FileCode
from tuning.planning.model_space import parameters_by_model
from tuning.records.ownership import Term
from tuning.records.schema import MODEL, TrialRecord
from tuning.runs.pool_file import pool_of
from tuning.steps import Step
from tuning.storage.background import BackgroundWriter
from tuning.storage.data_roots import add_own_rows
from tuning.storage.packs import PackWriter
from tuning.storage.run_directory import RunDirectory
from tuning.study.build import PlannedStudy
from tuning.study.customer_data import CustomerData, OwnCode
from tuning.study.interfaces import Configuration, Rule
from tuning.study.mutations import longest
from tuning.study.study import SCORE, Study, StudyTraining
from tuning.study.trial import TrialShape
from tuning.study.warm_start import evaluated_points, of_customer, points_to_evaluate
from tuning.user_code import ignore_warnings

if TYPE_CHECKING:
    import pandas as pd

    from tuning.runs.begin import OwnedRun


#: What a study's trials train on: checked data for models, rows for an objective, None for one without data.
TrialData: TypeAlias = "StudyData | pd.DataFrame | None"


def in_memory(spec: RunSpec) -> RunSpec | None:
    """Return the spec with what cannot be written down, a function; None when workers read all of it from the run."""
    objective = spec.definition.objective
    if not callable(objective):
        return None
    portable = spec.definition.model_copy(update={"data": None, "objective": PortableFunction(objective)})
    return replace(spec, definition=portable)


@dataclass(frozen=True)
class WorkerRun:
    """How a process that works for a run finds the run; every worker is sent one.

    Attributes:
        uri: of the run directory.
        term: of the run's owner.
        spec: where it holds a function, which cannot be written down; None where the worker reads it from the run.
        timing: how long the worker waits for what.
    """

    uri: str
    term: Term
    spec: RunSpec | None = None
    timing: Timing = USUAL

    @classmethod
    def from_owned(cls, owned: OwnedRun, timing: Timing | None = None) -> WorkerRun:
        """Return how workers find a run that this process owns. timing: where it is not the run's own."""
        term = replace(owned.term, accepts=())  # the long list of accepted parts stays here
        return cls(owned.directory.uri, term, in_memory(owned.plan.spec), timing or owned.timing)

    @property
    def directory(self) -> RunDirectory:
        """The run directory, opened anew."""
        return RunDirectory(self.uri, self.timing)


@dataclass
class WorkerContext:
    """What a worker keeps while it goes through its studies.

    Attributes:
        directory: of the run.
        run: the run's name.
        spec: what every study has in common.
        loader: reads customers' rows.
        customers: makes data of them.
        background: writes models while the next trials run.
        objective: the user's function that is tuned instead of models; None for models.
        kept_bytes: how much of customers' files is kept as data; the customer used last always is.
    """

    directory: RunDirectory
    run: str
    spec: RunSpec
    loader: Loader
    customers: CustomerData
    background: BackgroundWriter
    objective: Callable[..., object] | None = None
    kept_bytes: float = 0.0
    _kept: dict[str, tuple[int, TrialData]] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        directory: RunDirectory,
        run: str,
        spec: RunSpec,
        studies: Sequence[Study] = (),
        kept_bytes: float = 0.0,
        packs: bool = False,
    ) -> WorkerContext:
        """Open a run. The user's code is loaded here, so that what is wrong with it is no study's reason.

        studies: those to come; their keyed customers are read together. packs: whether models go into packs.
        """
        add_own_rows(directory.locate(FOLDER))
        code = OwnCode(spec.definition, directory).loaded()
        loader = Loader(spec.definition, [study.customer for study in studies])
        return cls(
            directory=directory,
            run=run,
            spec=spec,
            loader=loader,
            customers=CustomerData(spec, code, loader.read, pool_of(directory, spec.definition)),
            background=(PackWriter if packs else BackgroundWriter)(directory),
            objective=code.objective,
            kept_bytes=kept_bytes,
        )

    def read_together(self, customers: Iterable[Customer]) -> None:
        """Read what several customers have in common."""
        for customer in customers:
            if customer.key is not None:
                with suppress(Exception):  # its study says why
                    self.loader.read(customer)

    def data(self, customer: Customer) -> TrialData:
        """Return what a customer's trials train on, made once; `CustomerError` when its rows cannot be used."""
        if customer.id in self._kept:
            self._kept[customer.id] = self._kept.pop(customer.id)  # the one used last is dropped last
        else:
            while self._kept and sum(size for size, _ in self._kept.values()) + customer.size > self.kept_bytes:
                del self._kept[next(iter(self._kept))]
            self._kept[customer.id] = customer.size, self._loaded(customer)
        return self._kept[customer.id][1]

    def _loaded(self, customer: Customer) -> TrialData:
        if not customer.files:
            return None
        if self.objective is not None and reads_files(self.objective):
            if customer.key:
                raise CustomerError(FileCode.FILES_WANTED())
            check_readable(customer.files)
            return None
        return self.customers.prepared(customer) if self.objective is None else self.customers.frame(customer)

    def simple_first(self, study: Study) -> SimpleFirst | None:
        """Return what the rule of one standard error goes by; None where the best score wins."""
        if self.spec.definition.winner != "one_standard_error":
            return None
        known = families()
        return {name: known[name].simpler if name in known else () for name in parameters_by_model(study.space)}

    def training(self, study: Study, data: TrialData, home: Home | None = None) -> StudyTraining:
        """Return how a study's trials train on its customer's data. home: for an objective that makes trainers."""
        if self.objective is not None:
            return self._objective_training(self.objective, study, data, home)
        assert isinstance(data, StudyData)
        return _model_training(study, data, self.customers.metric(data))

    def _objective_training(
        self, objective: Callable[..., object], study: Study, data: TrialData, home: Home | None
    ) -> StudyTraining:
        name, files = self.spec.metric, study.customer.files
        shape = TrialShape(self.spec.definition.steps, best_prefix=False, progress=True)

        def start(config: Configuration, seed: int, state: object) -> Iterator[Step]:
            # A space that came from Ray's notation may be nested, and so is what its function expects.
            nested, full = study.space.nest(config), shape.full_steps
            return steps_of(objective, nested, name, seed, data, state, steps=full, files=files, home=home)

        return StudyTraining(start=start, shape=lambda _: shape)


def _model_training(study: Study, data: StudyData, metric: Metric) -> StudyTraining:
    def stepped(config: Configuration) -> SteppedFamily | None:
        found = data.family(str(config[MODEL]))
        return found if isinstance(found, SteppedFamily) else None

    def shape(config: Configuration) -> TrialShape:
        grows = stepped(config) is not None
        return TrialShape(full_steps(config, data), best_prefix=grows, progress=grows)

    def start(config: Configuration, seed: int, state: object) -> Iterator[Step]:
        assert state is None or isinstance(state, Mapping)  # what an earlier trial's step has given
        return train(config, data, metric, seed, state)

    return StudyTraining(
        start=start,
        shape=shape,
        frozen=lambda config: found.frozen | {found.length} if (found := stepped(config)) else None,
        longest=lambda config: (
            longest(study.space, config, found.length, MODEL) if (found := stepped(config)) else config
        ),
        exact=lambda config: found.exact(parameters_of(config)) if (found := stepped(config)) else True,
    )


def planned_study(run: str, spec: RunSpec, study: Study) -> PlannedStudy:
    """Return a study of a run, with stopping rules of its own: the definition's, and its limit of time. run: its id."""
    rules: list[Rule] = [rule.build(metric=SCORE, mode=spec.mode) for rule in spec.stop]
    rules += study_limit(spec.definition.limits)
    entries = of_customer(spec.definition.warm_start, study.customer.id)
    baseline = configuration_of(spec.definition.baseline)
    points = points_to_evaluate(study.space, spec.portfolio, entries, baseline, study.points_to_evaluate)
    return PlannedStudy(run, study, spec.metric, spec.mode, rules, points, evaluated_points(entries))


class Worker:
    """A process that does jobs of a run. `open_worker` makes one with limits.

    Attributes:
        context: the run and the customers at hand.
        guard: the limits of time; without them, as when somebody debugs, nothing is ended.
        marker: where it is noted what the process turns to; None where nobody looks.
        memory: the limit of memory; None without one.
        position: of its study in its batch.
    """

    def __init__(
        self,
        context: WorkerContext,
        guard: TimeLimits | None = None,
        marker: ProgressMarker | None = None,
        memory: MemoryLimit | None = None,
    ) -> None:
        self.context, self.marker, self.memory = context, marker, memory
        self.guard = guard or TimeLimits(context.spec.definition.limits)
        self.position = STARTING

    def study(self, position: int, study: Study, known: Sequence[TrialRecord] = ()) -> None:
        """Begin a study. position: in its batch. known: its trials so far."""
        self.position = position
        self.guard.study(hang_seconds(study.customer.about_rows, of_objective=self.context.objective is not None))
        self.guard.took(known)
        if self.marker is not None:
            self.marker.loaded(self.guard.loading)

    def loading(self) -> None:
        """Turn to reading and preparing the customer's data."""
        self._at(LOADING)
        self.guard.part()

    def trial(self, number: int) -> None:
        """Turn to the training of a trial."""
        self._at(number)
        self.guard.trial()

    def concluding(self) -> None:
        """Turn to fitting a model again: for its test score, for an ensemble, for the model that is kept."""
        self._at(CONCLUDING)
        self.guard.final_fit()

    def part(self, number: int, seconds: float) -> None:
        """Turn to a part of a job without trials, which may take so long. number: stands for a trial's."""
        self.position = 0
        self._at(number)
        self.guard.part(seconds)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for others, who have limits of their own."""
        self.guard.pause()
        yield
        self.guard.part()

    def _at(self, trial: int) -> None:
        if self.marker is not None:
            self.marker.at(self.position, trial)


@contextmanager
def open_worker(
    context: WorkerContext,
    cold_start_s: float,
    *,
    marker: ProgressMarker | None = None,
    found: Iterable[Crash] = (),
    slots: int = 1,
    customers: Iterable[Customer] = (),
) -> Iterator[Worker]:
    """Open a worker of this process, with the run's limits.

    cold_start_s: seconds on top of the first study's limits, while libraries are loaded; less where those before it
    have taken less. marker: says where it is; without one the process has a limit of memory only where the definition
    has. found: how earlier workers of the same batch ended. slots: see `MemoryLimit`. customers: to come; what they
    have in common is read now, which is no one's time and memory in particular.
    """
    limits = context.spec.definition.limits
    with ExitStack() as stack:
        stack.enter_context(ignore_warnings())
        memory, before = None, allocated()
        context.read_together(customers)
        if marker is not None or limits.memory_gb is not None:
            memory = stack.enter_context(MemoryLimit(limits.memory_gb, slots, allocated() - before))
        file = stack.enter_context(tempfile.TemporaryFile()) if marker is None else marker.stack
        grace = loading_grace(cold_start_s, (crash.loading for crash in found))
        guard = stack.enter_context(TimeLimits(limits, file, grace))
        yield Worker(context, guard, marker, memory)


def unblock_sigterm() -> None:
    """Let what this thread starts be ended with SIGTERM, which Ray's processes do not hear (`driver.signals.kept`)."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
