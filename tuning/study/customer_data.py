"""A customer's rows on their way to a study: read, given to the user's `prepare`, checked and split.

Workers, `tuning validate`, the look at the target before a run, and predictions all come through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from tuning.basics.seeds import derive
from tuning.data.child_process import PrepareProcess
from tuning.data.customers import Customer
from tuning.definition.definition import Definition
from tuning.definition.run_spec import RunSpec
from tuning.errors import CustomerError, DefinitionError
from tuning.evaluation.baseline import given_prediction
from tuning.evaluation.metrics import Metric
from tuning.evaluation.objective import Objective, resolve_objective
from tuning.evaluation.out_of_fold import KeptPredictions
from tuning.evaluation.study_data import EXAMPLE_ROWS, StudyData, keep_scorable_folds, study_data
from tuning.models.base import Family
from tuning.models.entries import own_families
from tuning.models.pooled import RunPool
from tuning.models.preparation import Preparation, made_of_several_rows
from tuning.notes import DataCode
from tuning.storage.run_directory import RunDirectory
from tuning.user_code import Function, apply_prepare, load_function, source_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class OwnCode:
    """The user's own Python that a definition names, each piece loaded when it is first needed.

    Attributes:
        definition: names the code.
        directory: of the run that has a copy of it; None while there is no run, for the files themselves.
        process: where rows are given to `prepare`; None for this process, as in a worker, which may be lost.
    """

    definition: Definition
    directory: RunDirectory | None = None
    process: PrepareProcess | None = None

    @cached_property
    def prepare(self) -> Function | None:
        """The function that every customer's rows go through; None without one."""
        name = self.definition.prepare
        return None if name is None else self._function("prepare", name)

    @cached_property
    def metric(self) -> Callable[..., float] | None:
        """The metric's function; None where it is a scorer of scikit-learn or a figure that an objective reports."""
        if not self.definition.own_metric or self.definition.metric is None:
            return None
        return cast("Callable[..., float]", self._function("metric", self.definition.metric))

    @cached_property
    def objective(self) -> Objective | None:
        """The function that is tuned instead of models; None for models."""
        given = self.definition.objective
        if given is None:
            return None
        return resolve_objective(self._function("objective", given) if isinstance(given, str) else given, given)

    @cached_property
    def families(self) -> Mapping[str, Family]:
        """The families of the user's own models, by name."""
        return own_families(self.definition.models, self.directory, self.definition.allow_code)

    def _function(self, key: str, name: str) -> Function:
        try:
            return load_function(name, self.directory)
        except DefinitionError as error:
            raise DefinitionError(f"{key}: {error}") from error

    def loaded(self) -> OwnCode:
        """Load everything, and return itself."""
        _ = self.prepare, self.metric, self.objective, self.families
        return self

    @cached_property
    def _source(self) -> str | None:
        return None if self.definition.prepare is None else source_of(self.definition.prepare, self.directory)

    def preparation(self, rows: pd.DataFrame) -> Preparation | None:
        """Return what a model keeps of `prepare`, for rows like these; None without one."""
        if self.definition.prepare is None:
            return None
        inputs = tuple((name, str(rows[name].dtype)) for name in rows.columns)
        return Preparation(self.definition.prepare, self._source, inputs, rows[:EXAMPLE_ROWS])

    def frame(self, rows: pd.DataFrame, customer: str) -> pd.DataFrame:
        """Return a customer's rows as `prepare` returns them; `CustomerError` when it fails."""
        if self.prepare is None:
            return rows
        return apply_prepare(self.prepare, rows) if self.process is None else self.process.frame(rows, customer)


@dataclass(frozen=True)
class CustomerData:
    """Gives customers their data.

    Attributes:
        spec: of the run.
        code: the user's functions and models.
        rows: reads a customer's rows, or raises a `CustomerError`.
        pool: of the run; None where it has none, or none yet.
    """

    spec: RunSpec
    code: OwnCode
    rows: Callable[[Customer], pd.DataFrame]
    pool: RunPool | None = None

    def frame(self, customer: Customer) -> pd.DataFrame:
        """Return the customer's rows after `prepare`, for an objective; `CustomerError` says what is wrong."""
        return self.code.frame(self.rows(customer), customer.id)

    def prepared(self, customer: Customer) -> StudyData:
        """Check and split the customer's rows for its study; `CustomerError` says why they cannot be used."""
        spec = self.spec
        rows = self.rows(customer)
        frame = self.code.frame(rows, customer.id)
        data = self.divided(frame, derive(spec.definition.seed, "data", customer.id))
        if (preparation := self.code.preparation(rows)) is not None:
            names = [column.name for column in data.columns]
            found = made_of_several_rows(lambda some: self.code.frame(some, customer.id), rows, frame, names)
            notes = (*data.notes, DataCode.SEVERAL_ROWS(columns=found)) if found else data.notes
            data = replace(data, preparation=preparation, example=preparation.example, notes=notes)
        data = replace(data, pool=self.pool)
        if data.given is not None:
            given_prediction(data, self.metric(data))  # what is wrong with it is known before anything is trained
        if not spec.definition.wants_ensembles:
            return data
        left_out = sum(len(unseen) for _, unseen in data.split.folds)
        kept = KeptPredictions.of_rows(left_out, data.task, spec.mode)
        return replace(data, kept=kept) if kept.most > 1 else data

    def divided(self, frame: pd.DataFrame, seed: int) -> StudyData:
        """Check and split a customer's rows, with the folds that the metric scores.

        Rows that the run's `time_column` cannot divide are split at random, with a note.
        """
        if self.spec.time_column is None:
            return self._divided(frame, self.spec.definition, seed)
        try:
            return self._divided(frame, self.spec.by_time, seed)
        except CustomerError as error:
            data = self._divided(frame, self.spec.definition, seed)
            return replace(data, notes=(*data.notes, DataCode.SPLIT_AT_RANDOM(self.spec.time_column, why=error.note)))

    def _divided(self, frame: pd.DataFrame, definition: Definition, seed: int) -> StudyData:
        data = study_data(frame, definition, str(self.spec.task), seed, self.code.families, self.spec.positive)
        return keep_scorable_folds(data, self.metric(data))

    def metric(self, data: StudyData) -> Metric:
        """Return the run's metric on this customer's classes."""
        return Metric(self.spec.metric, data.task, self.code.metric, self.spec.mode)
