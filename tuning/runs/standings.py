"""Who has which best study in a run, and who has none yet: what a leaderboard is made of, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schedulers.direction import loss_of
from tuning.basics.wording import amount, did_you_mean, name_list, natural_order
from tuning.definition.baselines import GivenBaseline
from tuning.errors import UnknownCustomerError
from tuning.notes import EndCode, Note
from tuning.records.schema import FINISHED, OK, UNFINISHED
from tuning.runs.verdicts import JUDGED, verdicts

#: The columns of trial records that tell how far an unfinished study is.
SO_FAR = ("study", "trial", "customer", "state", "score")
MOST_GUESSES = 10_000  # customers among which a misspelt one is looked for
BATCH = 20_000  # customers whose ids are texts of Python at a time
_NONE = -1  # in place of a row, where no study of a customer has ended


@dataclass(frozen=True)
class UnfinishedCustomers:
    """The customers without an ended study, and what their rows show.

    Attributes:
        reason: why.
        trials: how many are recorded, by customer.
        best: the best score of those that had their full budget, by customer; such a trial may win.
        status: `RUNNING` while the run goes on, else `UNFINISHED`.
    """

    reason: Note
    trials: dict[str, int]
    best: dict[str, float] = field(default_factory=dict)
    status: str = UNFINISHED

    @classmethod
    def of(cls, reason: Note, trials: pa.Table, mode: str, status: str = UNFINISHED) -> UnfinishedCustomers:
        """Return those of recorded trials. trials: with the columns `SO_FAR`. mode: of the metric."""
        counts = pc.value_counts(trials["customer"]).to_pylist()
        full = trials.filter(pc.and_(pc.equal(trials["state"], FINISHED), pc.is_finite(trials["score"])))
        best = full.group_by("customer", use_threads=False).aggregate([("score", mode)])
        scores = zip(best["customer"].to_pylist(), best[f"score_{mode}"].to_pylist(), strict=True)
        return cls(reason, {each["values"]: each["counts"] for each in counts}, dict(scores), status)

    def why(self, customer: str) -> Note:
        """Return the reason, with the best score of the customer's trials so far."""
        best = self.best.get(customer)
        return self.reason if best is None else EndCode.BEST_SO_FAR(why=self.reason, best=best)


class Standings:
    """Each customer's best study.

    Of several the one with the best cross-validation score; without any, the first.

    studies: records of studies in columns, `NEEDED` among them. planned: ids of customers, who are there whether one of
    their studies has ended or not. mode: the metric's better direction. baseline: as the definition has it.
    """

    def __init__(self, studies: pa.Table, planned: pa.ChunkedArray, mode: str, baseline: GivenBaseline = None) -> None:
        self.studies = studies
        self._baseline = baseline
        self._mode = mode
        names = pc.unique(pa.chunked_array([*planned.chunks, *studies["customer"].chunks], pa.string()))
        self.customers: pa.StringArray = names.take(pc.sort_indices(names))
        self._codes = pc.index_in(studies["customer"], value_set=self.customers).to_numpy()

    @cached_property
    def best(self) -> np.ndarray:
        """(customers,) the row of each one's best study; -1 where none has ended."""
        best = np.full(len(self.customers), _NONE)
        if len(self._codes) == len(np.unique(self._codes)):
            best[self._codes] = np.arange(len(self._codes))
            return best
        order = np.empty(len(self._codes), dtype=np.int64)
        order[pc.sort_indices(self.studies["study"]).to_numpy()] = np.arange(len(order))
        score = self.studies["cv_score"].to_numpy(zero_copy_only=False)
        scored = pc.and_(pc.equal(self.studies["status"], OK), self.studies["cv_score"].is_valid()).to_numpy()
        lost = np.where(scored, loss_of(np.nan_to_num(score), self._mode), 0.0)
        # The best one of each customer is written last.
        rows = np.lexsort((order, lost, ~scored, self._codes))[::-1]
        best[self._codes[rows]] = rows
        return best

    def named(self, customer: object) -> tuple[str, int]:
        """Return (id, row of the best study, -1 where none has ended) of a customer, None of the only one;
        `UnknownCustomerError` for somebody else."""
        customers = self.customers
        if customer is None and len(customers) != 1:
            raise UnknownCustomerError(
                f"which of the {amount(len(customers), 'customer')}? Give its id, such as {str(customers[0])!r}."
            )
        name = str(customers[0]) if customer is None else id_of(customer)
        row = self.row_of(name)
        if row is None:
            names = customers[:MOST_GUESSES].to_pylist()
            known = did_you_mean(name, names) or f" There are {name_list(names, 5)}."
            raise UnknownCustomerError(f"no customer {name!r} in this run.{known}")
        return name, row

    @cached_property
    def unfinished(self) -> np.ndarray:
        """(customers,) whether none of a customer's studies has ended."""
        unfinished: np.ndarray = self.best == _NONE
        return unfinished

    @cached_property
    def verdicts(self) -> pa.Array:
        """The `ToUse` on each customer; None without one."""
        return self.best_verdicts.take(pa.array(np.cumsum(~self.unfinished) - 1, mask=self.unfinished))

    @cached_property
    def best_verdicts(self) -> pa.Array:
        """The same in the order of `best_studies`."""
        return verdicts(self.best_studies(JUDGED), self._baseline)

    def verdict(self, customer: str) -> str | None:
        """Return the verdict on one customer."""
        verdict: str | None = self.verdicts[pc.index(self.customers, customer).as_py()].as_py()
        return verdict

    def best_studies(self, columns: Sequence[str]) -> pa.Table:
        """Return columns of the best studies by customer who has one; `seconds` are of all its studies."""
        there = ~self.unfinished
        found = self.studies.select(columns).take(pa.array(self.best[there]))
        if "seconds" not in columns:
            return found
        return found.set_column(list(columns).index("seconds"), "seconds", pa.array(self.seconds[there]))

    @cached_property
    def trials(self) -> np.ndarray:
        """(customers,) trials of all of a customer's studies that have ended."""
        return self._sums("trials").astype(np.int64)

    @cached_property
    def seconds(self) -> np.ndarray:
        """(customers,) seconds of these studies."""
        return self._sums("seconds")

    def _sums(self, column: str) -> np.ndarray:
        values = self.studies[column].to_numpy(zero_copy_only=False)
        return np.bincount(self._codes, weights=values, minlength=len(self.customers))

    def row_of(self, customer: str) -> int | None:
        """Return the row of a customer's best study, -1 where none has ended; None for somebody else."""
        place = pc.index(self.customers, customer).as_py()
        return None if place < 0 else int(self.best[place])

    def order(self, values: np.ndarray) -> np.ndarray:
        """Return (customers,) their positions by a number of each, the smallest first, equal ones by id.

        values: in the order of customers; NaN comes last.
        """
        order: np.ndarray = self._by_id[np.argsort(values[self._by_id], kind="stable")]
        return order

    @cached_property
    def _by_id(self) -> np.ndarray:
        """(customers,) their positions by id, 2 before 10."""
        starts = range(0, len(self.customers), BATCH)
        names = (self.customers.slice(start, BATCH).to_pylist() for start in starts)
        texts = [pa.array(map(natural_order, some), pa.string()) for some in names]
        by_id: np.ndarray = pc.sort_indices(pa.chunked_array(texts, pa.string())).to_numpy()
        return by_id


def id_of(customer: object) -> str:
    """Return the id of a customer that is given by it, or by the value of its key column; of several by a tuple."""
    if isinstance(customer, str):
        return customer
    from tuning.data.keys import customer_id, key_text  # with pandas, which the copy into MLflow does without

    return customer_id(tuple(map(key_text, customer if isinstance(customer, tuple) else (customer,))))
