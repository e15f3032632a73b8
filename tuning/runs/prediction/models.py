"""The models of customers, by their ids: those of a run; a release of champions has them, too."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tuning.definition.definition import Definition
from tuning.models.pooled import POOL
from tuning.records.schema import OK
from tuning.runs.plan_file import frozen_definition
from tuning.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from tuning.models.customer_model import CustomerModel
    from tuning.models.pooled import RunPool
    from tuning.records.ownership import Term

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
        """Whether there is a customer of that id."""

    def of(self, customer: object) -> ModelAnswer:
        """A customer's model; `TuningError` says why it has none. None is the only customer."""


class SavedModels(Protocol):
    """Where a run's models are: its `RunResult`."""

    directory: RunDirectory

    def __len__(self) -> int: ...

    def __contains__(self, customer: object) -> bool: ...

    @property
    def term(self) -> Term: ...

    def model(self, customer: object = None, *, allow_code: bool = False) -> CustomerModel: ...


@dataclass(frozen=True, eq=False)
class RunModels:
    """The models of a run.

    Attributes:
        result: the run.
        allow_code: as of `RunResult.model`.
    """

    result: SavedModels
    allow_code: bool = False

    def __reduce__(self) -> tuple[Callable[..., RunModels], tuple[object, ...]]:
        return _opened, (type(self.result), self.result.directory.root, self.allow_code)

    @cached_property
    def definition(self) -> Definition:
        """As the run has it."""
        return frozen_definition(self.result.directory)

    @property
    def mark(self) -> tuple[str, str | int]:
        """The run's name."""
        return "run", self.result.directory.root.rpartition("/")[2]

    @property
    def version(self) -> str:
        """The run's name and its owner, since a resume may have found better models."""
        return f"{self.mark[1]}, term {self.result.term.number}"

    def knows(self, customer: str) -> bool:
        """Whether the run has this customer, with a model or without."""
        return customer in self.result

    def of(self, customer: object) -> ModelAnswer:
        """As of `RunResult.model`."""
        model = self.result.model(customer, allow_code=self.allow_code)
        return ModelAnswer(model, POOL if model.family == POOL else OWN)


@lru_cache(maxsize=1)
def _opened(kind: Callable[[str], SavedModels], run: str, allow_code: bool) -> RunModels:
    """In a child process: the same object again and again."""
    return RunModels(kind(run), allow_code)


class ModelReader:
    """Loads models of a run as they are saved; the pool is read once."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory

    def saved(self, path: str, sha256: str | None, allow_code: bool) -> CustomerModel:
        """A saved model, checked against its digest. path: of its folder. allow_code: as of `RunResult.model`."""
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
        """The pool as the model of a customer whom the run does not have; None where there is no pool to ask.

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
