"""The models of a release, by customer: what serves each of them, checked by its digest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from tuning.definition.definition import Definition
from tuning.errors import NoModelError, RunError, UnknownCustomerError
from tuning.models.customer_model import CustomerModel
from tuning.notes import ServingCode
from tuning.runs.plan_file import frozen_definition
from tuning.runs.prediction.models import ModelAnswer, ModelReader
from tuning.serving.champion import HERE, NONE, Champion, champions_of
from tuning.serving.release import Release
from tuning.serving.releases import Releases


@dataclass(frozen=True)
class ReleaseModels:
    """The models of a release; `tuning.runs.prediction` predicts files by them.

    Attributes:
        name: of the champions.
        storage: the folder or URI below which `champions/` lies.
        number: of the release.
        allow_code: as of `RunResult.model`.
        kept: in place of `load`, where somebody keeps models.
    """

    name: str
    storage: str
    number: int
    allow_code: bool = False
    kept: Callable[[str, str, str | None], CustomerModel] | None = field(default=None, compare=False)

    @classmethod
    def current(cls, name: str, storage: str, *, allow_code: bool = False) -> ReleaseModels:
        """Return those of the release that is in force; `RunError` where there is none."""
        return cls(name, storage, Releases(name, storage).current().number, allow_code)

    def __reduce__(self) -> tuple[type[ReleaseModels], tuple[str, str, int, bool]]:
        return type(self), (self.name, self.storage, self.number, self.allow_code)

    @cached_property
    def _releases(self) -> Releases:
        return Releases(self.name, self.storage)

    @cached_property
    def _release(self) -> Release:
        return self._releases.at(self.number)

    @cached_property
    def _champions(self) -> pa.Table:
        return self._releases.champions(self._release)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._champions["customer"].to_pylist())}

    @cached_property
    def definition(self) -> Definition:
        """As the run has it that a champion comes from; `RunError` where none comes from a run."""
        for run in dict.fromkeys(self._champions["run"].to_pylist()):
            if run not in (HERE, None):
                return frozen_definition(self._releases.run_directory(run))
        raise RunError(f"no champion of {self.name} comes from a run, so nothing says how rows are read.")

    @property
    def mark(self) -> tuple[str, str | int]:
        """The release's number."""
        return "release", self.number

    @property
    def version(self) -> str:
        """The name and the release, which never changes."""
        return f"{self.name}, release {self.number}"

    def knows(self, customer: str) -> bool:
        """Return whether the release has a row of this customer."""
        return customer in self._places

    def champion(self, customer: str) -> Champion:
        """Return what serves a customer, known or not; `NoModelError` or `UnknownCustomerError` says why none."""
        if self.knows(customer):
            (champion,) = champions_of(self._champions.slice(self._places[customer], 1))
        elif (others := self._releases.others(self._release)) is not None:
            champion = others
        else:
            raise UnknownCustomerError(f"no customer {customer!r} in release {self.number} of {self.name}.")
        if champion.model_path is None or champion.answer == NONE:
            raise NoModelError(ServingCode.NO_CHAMPION(customer, why=[*champion.reason]))
        return champion

    def load(self, run: str, model_path: str, model_sha256: str | None) -> CustomerModel:
        """Return the model of a champion, of which these are fields."""
        return ModelReader(self._releases.run_directory(run)).saved(model_path, model_sha256, self.allow_code)

    def of(self, customer: object) -> ModelAnswer:
        """Return a customer's model, or what stands in for it; errors as of `champion`."""
        champion = self.champion(str(customer))
        assert champion.model_path is not None
        model = (self.kept or self.load)(champion.run, champion.model_path, champion.model_sha256)
        return ModelAnswer(model, champion.answer)
