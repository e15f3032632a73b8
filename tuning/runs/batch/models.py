"""The models of customers, by their ids: those of a run; a release of champions has them, too."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Protocol

from tuning.definition.definition import Definition
from tuning.models.pooled import POOL
from tuning.runs.plan_file import frozen_definition

if TYPE_CHECKING:
    from tuning.models.customer_model import CustomerModel
    from tuning.records.ownership import Term
    from tuning.storage.run_directory import RunDirectory

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
