"""The models of customers, by their ids: of a run (`RunModels` of its results), or of a release of champions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tuning.definition.definition import Definition
from tuning.records.schema import OK
from tuning.runs.plan_file import frozen_definition
from tuning.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from tuning.models.customer_model import CustomerModel
    from tuning.models.pooled import RunPool

OWN, NONE = "own", "none"  # what answers for a row: its customer's own model, nothing


@dataclass(frozen=True)
class ModelAnswer:
    """What answers for a customer.

    Attributes:
        model: the model.
        answer: what it is, as the column `answer` says it: the customer's own one, or what stands in for that.
    """

    model: CustomerModel
    answer: str = OWN


class CustomerModels(Hashable, Protocol):
    """The models of customers. Whoever implements it can be pickled: child processes open the models again."""

    @property
    def definition(self) -> Definition:
        """How the rows are read: the key columns, the options of CSV."""

    @property
    def mark(self) -> tuple[str, str | int]:
        """The column that says whose models have answered, and its value, such as the number of a release."""

    @property
    def version(self) -> str:
        """What is another one where a model may be another one."""

    def knows(self, customer: str) -> bool:
        """Return whether there is a customer of that id."""

    def of(self, customer: object) -> ModelAnswer:
        """Return a customer's model; `TuningError` says why it has none. None is the only customer."""


class ModelReader:
    """Loads models of a run as they are saved; the pool is read once."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory

    def saved(self, path: str, sha256: str | None, allow_code: bool) -> CustomerModel:
        """Return a saved model after a look at its digest. path: its folder. allow_code: as of `RunResult.model`."""
        from tuning.models.customer_model import load_model
        from tuning.runs.trusted_code import check_preparation

        model = load_model(self.directory, path, sha256, allow_code=allow_code)
        check_preparation(model.preparation, self.directory, allow_code)
        return model

    @cached_property
    def _pool(self) -> RunPool | None:
        from tuning.runs.pool_file import pool_of

        return pool_of(self.directory, frozen_definition(self.directory))

    def of_unseen(self, customer: str, studies: pa.Table, allow_code: bool) -> CustomerModel | None:
        """Return the pool as the model of a customer whom the run does not have; None where there is no pool to ask.

        studies: the run's records, one of whose models has the `prepare` that new rows go through. allow_code: as of
        `RunResult.model`.
        """
        definition = frozen_definition(self.directory)
        if self._pool is None or self._pool.typical is None:
            return None
        from tuning.evaluation.stand_in import stand_in

        if definition.prepare is None:
            return stand_in(self._pool, customer, definition)
        there = studies.filter(pc.equal(studies["status"], OK)).select(["model_path", "model_sha256"])
        some = there.filter(there["model_path"].is_valid()).slice(0, 1).to_pylist()
        if not some:
            return None
        preparation = self.saved(some[0]["model_path"], some[0]["model_sha256"], allow_code).preparation
        return stand_in(self._pool, customer, definition, preparation=preparation)
