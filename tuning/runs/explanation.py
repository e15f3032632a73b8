"""Why a customer's winner says what it says: which columns its score hangs on, and how each of them moves it.

The winner is fitted once more on the rows of the search, as for its test score, and asked about the hold-out rows: the
saved model may have learned from those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import pandas as pd
from tqdm import tqdm

from schedulers.direction import worth_of
from tuning.basics.public import is_interactive
from tuning.basics.seeds import derive
from tuning.basics.wording import name_list, raised
from tuning.data.customers import Customer
from tuning.data.loading import Loader
from tuning.errors import ChangedDataError, CustomerError, NoModelError, RunError, TuningError, UntrustedCodeError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.evaluation.fixed_fit import fit_fixed
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.models.customer_model import CustomerModel
from tuning.notes import EndCode, FileCode
from tuning.preprocessing.dates import parse_dates
from tuning.preprocessing.kinds import DATE, NUMBER, Column
from tuning.preprocessing.roles import read_target
from tuning.preprocessing.task import Prediction
from tuning.records.schema import StudyRecord, TrialRecord, as_row
from tuning.runs.configurations import fixed_configuration
from tuning.runs.plan_file import RecordedPlan
from tuning.runs.pool_file import pool_of
from tuning.runs.trusted_code import check_definition
from tuning.storage.run_directory import RunDirectory
from tuning.study.customer_data import CustomerData, OwnCode
from tuning.user_code import ignore_warnings

REPEATS = 10  # times that a column is shuffled
MOST_ASKED = 100_000  # rows that a model is asked about at once
CLEAR = 2.0  # standard deviations over the repeats that an importance is above 0, as in scikit-learn's user guide
NOISE = 1e-12  # of the largest importance: a smaller one is 0
POINTS = 20  # of a curve
MOST_TEXTS = 30  # of a column whose values are shown one by one


@dataclass(frozen=True)
class Winner:
    """A customer's winner that has not seen the hold-out rows, with these.

    Attributes:
        model: fitted on the rows of the search; takes rows after `prepare`.
        rows: the hold-out rows, after `prepare`.
        places: (n,) theirs among the customer's rows, from 0.
        y: (n,) what they should be answered: numbers, or codes of classes.
        weight: (n,) of the rows; None where all count alike.
        metric: of the run.
        seed: of the shuffling.
    """

    model: CustomerModel
    rows: pd.DataFrame
    places: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    metric: Metric
    seed: int

    @cached_property
    def answers(self) -> Prediction:
        """What the model says of the hold-out rows."""
        return self.model.prediction(self.rows)

    def hold_out(self) -> pd.DataFrame:
        """Return a row per hold-out row: `actual`, `prediction`, and `probability_…` of each class if there are any.

        The index is the row's place among the customer's rows, from 0: `frame.iloc[table.index]` are the rows.
        `attrs["classes"]`: the labels in their order; () of numbers.
        """
        found, labels = self.answers, self.model.task.classes
        actual = np.asarray(labels)[self.y.astype(int)] if labels else self.y
        table = pd.DataFrame({"actual": actual, "prediction": self.model.labels(found)}, index=self.places)
        if labels and found.proba is not None:
            for place, label in enumerate(labels):
                table[f"probability_{label}"] = found.proba[:, place]
        table.attrs["classes"] = labels
        return table

    def importance(self, repeats: int = REPEATS) -> pd.DataFrame:
        """Return one row per column of the data, the most important first.

        `importance`: how much the score on the hold-out rows falls when the column's values are shuffled among them, in
        the metric's own unit; `std`: over the repeats; `matters`: whether it is clearly above 0. Columns that say the
        same share their importance, since the model still has the other one.

        Source: permutation importance (Breiman, Random Forests, 2001).
        """
        names = [column.name for column in self.model.columns]
        falls = self._falls(names, repeats)
        noise = NOISE * np.abs(falls).max(initial=0.0)  # of adding up what cancels out
        means, stds = (np.where(np.abs(x) > noise, x, 0.0) for x in (falls.mean(axis=1), falls.std(axis=1)))
        table = pd.DataFrame({"column": names, "importance": means, "std": stds})
        table["matters"] = table["importance"] > CLEAR * table["std"].clip(lower=1e-12)
        return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)

    def _falls(self, names: Sequence[str], repeats: int) -> np.ndarray:
        """Return (columns, repeats) how much the score falls with each column shuffled.

        scikit-learn's function asks the model for each repeat alone, which took eight times as long: what a call costs
        by itself is that of hundreds of rows. Here one call answers all repeats of a column, up to `MOST_ASKED` rows.
        """
        rows, count = self.rows[list(names)], len(self.rows)
        random, whole = np.random.default_rng(self.seed), self._score(self.answers)
        falls = np.empty((len(names), repeats))
        for place, name in enumerate(names):
            for part in np.array_split(np.arange(repeats), min(repeats, -(-repeats * count // MOST_ASKED))):
                order = np.concatenate([random.permutation(count) for _ in part])
                asked = pd.concat([rows] * len(part), ignore_index=True)
                asked[name] = rows[name].take(order).array
                said = self.model.prediction(asked)
                for number, repeat in enumerate(part):
                    falls[place, repeat] = whole - self._score(said.take(slice(number * count, (number + 1) * count)))
        return worth_of(falls, self.metric.mode)

    def _score(self, said: Prediction) -> float:
        with ignore_warnings():  # of scikit-learn: a class that nobody predicts
            return self.metric.score(self.y, said, self.weight)

    def partial_dependence(self, column: str, points: int = POINTS) -> pd.DataFrame:
        """Return how the mean prediction changes with one column: rows of `value` and `prediction`.

        Of a number at so many points between its 5 % and 95 % quantiles, of dates at so many of them, of a text at each
        of its values. For two classes it is the probability of the positive one, for more a column per class.

        Source: partial dependence (Friedman, Greedy Function Approximation, 2001),
        `sklearn.inspection.partial_dependence`.
        """
        from sklearn.inspection import partial_dependence

        kinds = {each.name: each for each in self.model.columns}
        if column not in kinds:
            raise RunError(f"{column!r} is no column of the model; it has {name_list(kinds)}.")
        rows = self.rows[self.rows[column].notna()].reset_index(drop=True)
        values, dates = rows[column], _dates(rows[column], kinds[column], points)
        texts = kinds[column].kind != NUMBER or not pd.api.types.is_numeric_dtype(values) or values.dtype == bool
        if texts and dates is None and values.nunique() > MOST_TEXTS:
            raise RunError(
                f"{column!r} has {values.nunique()} different values, and only up to {MOST_TEXTS} can be shown one by "
                "one; ask for another column."
            )
        if values.nunique() < 2:
            raise RunError(f"{column!r} has a single value in the hold-out rows, so there is no curve of it.")
        if not texts:
            rows = pd.DataFrame({**rows, column: values.astype(float)}, index=rows.index)
        found = partial_dependence(
            self.model,
            rows,
            [column],
            categorical_features=[column] if texts else None,
            grid_resolution=points,
            custom_values=None if dates is None else {column: values[dates.index].to_numpy()},
        )
        classes = self.model.task.classes if len(self.model.task.classes) > 2 else ["prediction"]
        curves = {str(name): curve for name, curve in zip(classes, found["average"], strict=True)}
        shown = found["grid_values"][0] if dates is None else dates.to_numpy()
        return pd.DataFrame({"value": shown, **curves})


def _dates(values: pd.Series, column: Column, most: int) -> pd.Series | None:
    """Return at most so many different dates of a column, in order, in UTC; None where it holds no dates."""
    if column.kind != DATE:
        return None
    typed = pd.api.types.is_datetime64_any_dtype(values)
    moments = pd.to_datetime(values, utc=True) if typed else parse_dates(values.astype(str), column.format)
    different = moments.dt.tz_localize(None).dropna().drop_duplicates().sort_values()
    return different.iloc[np.unique(np.linspace(0, len(different) - 1, most).round().astype(int))]


@dataclass(frozen=True)
class PlannedRows:
    """The rows of some of a run's customers, as the run read them.

    Attributes:
        directory: of the run.
        plan: of its newest owner.
        customers: ids of those that will be asked for.
        allow_code: as of `RunResult.model`.
        changed: whether rows that are other ones by now are read, too.
    """

    directory: RunDirectory
    plan: RecordedPlan
    customers: Sequence[str]
    allow_code: bool = False
    changed: bool = False

    @cached_property
    def sources(self) -> Mapping[str, Customer]:
        """The customers by id."""
        wanted = set(self.customers)
        planned = (study.customer for study in chain(self.plan.studies, self.plan.ended))
        return {customer.id: customer for customer in planned if customer.id in wanted}

    @cached_property
    def data(self) -> CustomerData:
        """Gives their data; `UntrustedCodeError` where that runs code which is not allowed."""
        definition = self.plan.spec.definition
        check_definition(definition, self.directory, self.allow_code)
        code = OwnCode(definition, self.directory).loaded()
        loader = Loader(definition, self.sources.values())

        def rows(customer: Customer) -> pd.DataFrame:
            try:
                return loader.read(customer)
            except ChangedDataError:
                if not self.changed:
                    raise
                return Loader(definition, ()).read(replace(customer, stamp="", digest="", rows=None))

        return CustomerData(self.plan.spec, code, rows, pool_of(self.directory, definition))


class Winners(PlannedRows):
    """Makes the winners of a run's customers again."""

    def of(self, study: StudyRecord, trials: Iterable[TrialRecord]) -> Winner:
        """Return the winner of a study. trials: of the customer.

        `NoModelError` without one, and where the model is a constant; `CustomerError` where the rows cannot be read, or
        have changed since the run.
        """
        spec, customer = self.plan.spec, study.customer
        if spec.task is None:
            raise NoModelError(EndCode.CUSTOMER_LACKS(customer, what="model to explain", why=EndCode.OBJECTIVE_TUNED()))
        if study.trial is None and (study.reason or study.trials):
            why = study.reason or EndCode.LOOKS_AT_NO_COLUMN()
            raise NoModelError(EndCode.CUSTOMER_LACKS(customer, what="model to explain", why=why))
        source = self.sources[customer]
        data = self.data.prepared(source)
        if not len(data.split.test):
            raise RunError("no rows were held out (split.test: 0), and on its own rows any model seems to need all.")
        rows, places = self._rows(source, data)
        fitted = fit_fixed(self._fixed(study, trials), data, self.data.metric(data), customer, all_rows=False).model
        assert fitted is not None
        return Winner(
            model=CustomerModel(customer, data.task, fitted.members),
            rows=rows.iloc[data.split.test].reset_index(drop=True),
            places=places[data.split.test],
            y=data.y[data.split.test],
            weight=data.weight_of(data.split.test),
            metric=self.data.metric(data),
            seed=derive(spec.definition.seed, "importance", customer) % 2**32,
        )

    def _fixed(self, study: StudyRecord, trials: Iterable[TrialRecord]) -> FixedConfiguration:
        if study.trials:
            return fixed_configuration(as_row(study), {each.key: each for each in trials})
        known = next(each.fixed for each in chain(self.plan.studies, self.plan.ended) if each.id == study.study)
        assert known is not None
        return known

    def _rows(self, source: Customer, data: StudyData) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the rows with a target, in the order of `data`, and their places among all rows."""
        definition, spec = self.plan.spec.definition, self.plan.spec
        frame = self.data.frame(source)
        known = pd.notna(read_target(frame[definition.target], str(spec.task))[0].to_numpy())
        rows = frame[known]
        if len(rows) != len(data.y):
            raise CustomerError(FileCode.PREPARE_VARIES(rows=len(rows), before=len(data.y)))
        return rows, np.flatnonzero(known)


def across(
    directory: RunDirectory,
    plan: RecordedPlan,
    chosen: Sequence[str],
    studies: Sequence[StudyRecord],
    trials: Sequence[TrialRecord],
    *,
    allow_code: bool = False,
) -> pd.DataFrame:
    """Return which columns matter for how many customers: one row per column, the one that matters most often first.

    `matters_for`: customers for whom it clearly does (`Winner.importance`); `customers`: that have it; `share`: the
    median of its part in the sum of a customer's importances, which has no unit. The table's `attrs["left_out"]`: the
    customers that could not be asked, with the reason. chosen: ids of studies, one of each. studies, trials: of these.
    """
    studies = [study for study in studies if study.study in chosen]
    winners = Winners(directory, plan, [study.customer for study in studies], allow_code)
    rows: list[tuple[str, str, bool, float]] = []
    left_out: dict[str, str] = {}
    for study in tqdm(studies, "customers", leave=False, disable=not is_interactive()):
        try:
            table = winners.of(study, trials).importance()
        except UntrustedCodeError:
            raise  # one word allows it for all
        except TuningError as error:
            left_out[study.customer] = str(error)
            continue
        except Exception as error:  # of the user's own model, or a metric that is not defined on shuffled rows
            left_out[study.customer] = raised(error)
            continue
        positive = table["importance"].clip(lower=0.0)
        shares = positive / max(positive.sum(), np.finfo(float).tiny)
        rows += [(study.customer, *row) for row in zip(table["column"], table["matters"], shares, strict=True)]
    found = pd.DataFrame(rows, columns=["customer", "column", "matters", "share"])
    grouped = found.groupby("column", sort=False)
    columns = {"matters_for": grouped["matters"].sum(), "customers": grouped.size(), "share": grouped["share"].median()}
    table = pd.DataFrame(columns).sort_values(["matters_for", "share"], ascending=False, kind="stable").reset_index()
    table.attrs["left_out"] = left_out
    return table
