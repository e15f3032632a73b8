"""The models of customers, by their ids: those of a run; a release of champions has them, too."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from tuning.definition.definition import Definition
from tuning.models.pooled import POOL
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult

if TYPE_CHECKING:
    from tuning.models.customer_model import CustomerModel

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

    def of(self, customer: str) -> ModelAnswer:
        """A customer's model; `TuningError` says why it has none."""


@dataclass(frozen=True)
class RunModels:
    """The models of a run.

    Attributes:
        run: its folder or URI.
        allow_code: as of `RunResult.model`.
    """

    run: str
    allow_code: bool = False

    def __reduce__(self) -> tuple[type[RunModels], tuple[str, bool]]:
        return type(self), (self.run, self.allow_code)

    @cached_property
    def _result(self) -> RunResult:
        return RunResult(self.run)

    @cached_property
    def definition(self) -> Definition:
        """As the run has it."""
        return frozen_definition(self._result.directory)

    @property
    def mark(self) -> tuple[str, str | int]:
        """The run's name."""
        return "run", self._result.directory.root.rpartition("/")[2]

    @property
    def version(self) -> str:
        """The run's name and its owner, since a resume may have found better models."""
        return f"{self.mark[1]}, term {self._result.term.number}"

    def knows(self, customer: str) -> bool:
        """Whether the run has this customer, with a model or without."""
        return customer in self._result

    def of(self, customer: str) -> ModelAnswer:
        """As of `RunResult.model`."""
        model = self._result.model(customer, allow_code=self.allow_code)
        return ModelAnswer(model, POOL if model.family == POOL else OWN)
