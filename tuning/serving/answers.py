"""Answers for customers whose own model is none, or worse than knowing nothing: the run's pool, or a constant.

They lie in the champions' own folder, so that no run has to be kept for them. A constant looks at no column.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa

from schedulers.direction import worth_of
from tuning.basics.documents import Json
from tuning.errors import CustomerError, TuningError, reason_of
from tuning.evaluation.constant import answer_of, constant_of, find_constant
from tuning.evaluation.fixed import FixedConfiguration, FixedMember
from tuning.evaluation.metrics import Metric
from tuning.evaluation.pooling import pool_alone, pooled_answers
from tuning.evaluation.study_data import StudyData
from tuning.models.customer_model import CustomerModel
from tuning.models.pooled import PooledMember
from tuning.notes import Note, ServingCode
from tuning.preprocessing.classes import read_classes
from tuning.preprocessing.roles import encode_target, read_target
from tuning.preprocessing.task import REGRESSION, Prediction, Task
from tuning.records.schema import MODEL, Config
from tuning.runs.explanation import PlannedRows
from tuning.runs.plan_file import RecordedPlan
from tuning.runs.prediction.models import ModelReader
from tuning.serving.champion import CONSTANT, HERE, POOL
from tuning.storage.names import slug
from tuning.storage.packs import PackWriter
from tuning.storage.run_directory import RunDirectory

FOLDER = "answers"
MOST_CUSTOMERS, MOST_ROWS = 50, 200  # that the answer of others is made of


@dataclass
class Answers:
    """Makes them, of the rows of a run's customers, and writes them into the champions' folder.

    Each answer is given as fields of `Champion`; nobody may rely on it before `flush`. `CustomerError` says why there
    is none.

    directory, plan: of the run. studies: its records. customers: ids of those that will be asked for. root: the
    champions' folder. allow_code: as of `RunResult.model`.
    """

    directory: RunDirectory
    plan: RecordedPlan
    studies: pa.Table
    customers: Sequence[str]
    root: RunDirectory
    allow_code: bool = False
    _writer: PackWriter = field(init=False)
    _copied: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._writer = PackWriter(self.root)

    @cached_property
    def _rows(self) -> PlannedRows:
        # For a constant, the rows that there are now do as well.
        return PlannedRows(self.directory, self.plan, self.customers, self.allow_code, changed=True)

    def of(self, customer: str) -> Json:
        """Return a customer's answer."""
        try:
            return self._pooled(customer) or self._constant(customer)
        except TuningError:
            raise
        except Exception as error:  # of the user's own code
            raise CustomerError(reason_of(error)) from error

    def of_unread(self, customer: str) -> Json:
        """Return the pool, in the typical customer's unit: nobody reads rows again that have ended workers."""
        found = self._unseen(customer)
        if found is None:
            raise CustomerError(ServingCode.NOT_READ_AGAIN())
        return found

    def of_others(self) -> Json:
        """Return what answers somebody unknown: the pool, else a constant of rows of each of these customers."""
        if (found := self._unseen("")) is not None:
            return found
        parts = []
        for customer in self._rows.sources:
            with contextlib.suppress(CustomerError):
                parts.append(self._targets(customer)[:MOST_ROWS])
        if not parts:
            raise CustomerError(ServingCode.NO_TARGETS())
        return self._constant_of("", pd.concat(parts, ignore_index=True), len(parts))

    def _unseen(self, customer: str) -> Json | None:
        model = ModelReader(self.directory).of_unseen(customer, self.studies, self.allow_code)
        return None if model is None else self._of_pool(model, 0)

    def flush(self) -> None:
        """Wait until all is in place."""
        self._writer.flush()

    def _pooled(self, customer: str) -> Json | None:
        """Return the pool, where there is one that the hold-out does not call worse than a constant."""
        if self._rows.data.pool is None or self._rows.data.pool.whole is None:
            return None
        try:
            data = self._rows.data.prepared(self._rows.sources[customer])
            found = pooled_answers(self._rows.data.pool, data, customer)
        except CustomerError:
            return None
        members, prediction = pool_alone(self._rows.data.pool, found, data.task)
        if not self._worth_more(prediction, data):
            return None
        model = CustomerModel(customer, data.task, members, data.example, data.preparation)
        return self._of_pool(model, len(data.split.search))

    def _of_pool(self, model: CustomerModel, rows: int) -> Json:
        for member in model.members:
            if isinstance(member, PooledMember):
                self._copy(member)
        return self._saved(POOL, model, rows, ServingCode.POOL_ANSWER())

    def _worth_more(self, prediction: Prediction, data: StudyData) -> bool:
        """Return whether it scores better on the hold-out than a constant; undefined scores are worth nothing."""
        metric, test = self._rows.data.metric(data), data.split.test
        constant = find_constant(data, metric)
        if constant is None or constant.test_score is None or not len(test):
            return False
        try:
            score = data.score(prediction, test, metric)
        except ValueError:
            return False
        return worth_of(score, metric.mode) > worth_of(constant.test_score, metric.mode)

    def _copy(self, member: PooledMember) -> None:
        """The pool's files lie in the champions' folder as they do in a run: once, under the same names."""
        assert member.pool is not None
        for file in member.pool.files.values():
            if file.path not in self._copied:
                self.root.write(file.path, self.directory.read(file.path))
                self._copied.add(file.path)

    def _constant(self, customer: str) -> Json:
        if customer not in self._rows.sources:
            raise CustomerError(ServingCode.NOT_IN_PLAN())
        return self._constant_of(customer, self._targets(customer))

    def _constant_of(self, customer: str, values: pd.Series, known: int = 0) -> Json:
        """Return the constant of some targets. known: how many customers have these, where they are several."""
        y, task = self._encoded(values)
        spec = self.plan.spec
        metric = Metric(spec.metric, task, self._rows.data.code.metric, spec.mode)
        member = constant_of(y, task, metric, spec.definition.bounds)
        what = answer_of(member.config)
        code = ServingCode.CONSTANT_OF_KNOWN if known else ServingCode.CONSTANT_ANSWER
        return self._saved(CONSTANT, CustomerModel(customer, task, (member,)), len(y), code(what=what, customers=known))

    def _targets(self, customer: str) -> pd.Series:
        """Return what is known of a customer's target, however little that is."""
        target = self.plan.spec.definition.target
        frame = self._rows.data.frame(self._rows.sources[customer])
        if target not in frame.columns:
            raise CustomerError(ServingCode.NO_TARGET_COLUMN(str(target)))
        values = read_target(frame[target], str(self.plan.spec.task))[0]
        return values[pd.notna(values.to_numpy())]

    def _encoded(self, values: pd.Series) -> tuple[np.ndarray, Task]:
        """Return targets as numbers or codes of classes, be they all the same."""
        spec, kind = self.plan.spec, str(self.plan.spec.task)
        if kind == REGRESSION:
            numbers = values.to_numpy(dtype=np.float64)
            y, task = numbers[np.isfinite(numbers)], Task(kind)
        elif values.nunique() > 1:
            positive = spec.positive if spec.definition.positive is None else spec.definition.positive
            y, task = encode_target(values, kind, positive)
        else:
            y, classes = read_classes(values)
            task = Task(kind, classes)
        if not len(y):
            raise CustomerError(ServingCode.NO_TARGET())
        return y, task

    def _saved(self, kind: str, model: CustomerModel, rows: int, what: Note) -> Json:
        members = (FixedMember({MODEL: each.family, **each.config}, 0, weight=each.weight) for each in model.members)
        saved = model.save(self._writer, self._writer.folder(FOLDER, slug(model.customer)))
        return {
            "answer": kind,
            "run": HERE,
            "model_path": saved.path,
            "model_sha256": saved.sha256,
            "configuration": FixedConfiguration(tuple(members)).to_json(),
            "rows": rows,
            "reason": (what,),
        }


def configuration_text(config: Config) -> str:
    """Return the configuration of a single member that takes no seed, as champions have it."""
    return FixedConfiguration((FixedMember(config, 0),)).to_json()
