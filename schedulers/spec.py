"""What a scheduler's spec is: a frozen, validated value that says what the scheduler needs and builds it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from schedulers.direction import Mode
from schedulers.errors import SchedulerError, complaints, did_you_mean, switch_for_number
from schedulers.mutation import NO_MUTATIONS, Mutations
from schedulers.protocols import Scheduler

MOST_STEPS = 1_000_000_000
Steps = Annotated[int, Field(ge=1, le=MOST_STEPS)]
# Below the first, a ladder has a rung at nearly every step; above the second, nothing but the best is ever kept.
ReductionFactor = Annotated[float, Field(ge=1.1, le=1000.0)]


class SchedulerSpec(BaseModel, ABC):
    """Base of all specs. A subclass in its own file of this package is a new scheduler.

    The class attributes together are the compatibility table (docs/schedulers.md).

    Attributes:
        name: the word used in definitions.
        summary: one sentence for the table.
        needs_state: trials continue from another trial's state, so the training code must give `Step.get_state`.
        stops: trials are ended before their last step.
        pauses: trials are paused and continued later. In process that is a suspended generator; as trials of
            Ray Tune it needs checkpoints.
        population: all trials are proposed before the first one starts.
        mutates: changes hyperparameters during training, so `build` needs `mutations`, and no algorithm can learn.
        algorithms: the algorithms that it goes with, where these are not all, or all that learn nothing.
        why: why it does not go with others, as the second half of the sentence of refusal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    summary: ClassVar[str]
    needs_state: ClassVar[bool] = False
    stops: ClassVar[bool] = True
    pauses: ClassVar[bool] = False
    population: ClassVar[bool] = False
    mutates: ClassVar[bool] = False
    algorithms: ClassVar[frozenset[str] | None] = None
    why: ClassVar[str] = ""

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        if switch_for_number(value, cls.model_fields[info.field_name or ""].annotation):
            raise ValueError("must be a number")
        return value

    def to_dict(self) -> dict[str, object]:
        """Name and all options; `parse(spec.to_dict()) == spec`."""
        return {"name": self.name, **self.model_dump(mode="json")}

    def usable(self, mutations: Mutations) -> bool:
        """Whether there is anything that this scheduler could change during training; True where it changes nothing."""
        return True

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """The spec with these options; raises `SchedulerError` naming the option, its value and the rule."""
        for option in options:
            if option not in cls.model_fields:
                hint = did_you_mean(str(option), cls.model_fields)
                raise SchedulerError(f"scheduler {cls.name}: unknown option {option!r}; {hint}")
        try:
            return cls.model_validate(options)
        except ValidationError as error:
            raise SchedulerError(f"scheduler {cls.name}: {complaints(error)}") from None

    @abstractmethod
    def build(
        self, *, metric: str, mode: Mode, max_steps: int, seed: int, mutations: Mutations = NO_MUTATIONS
    ) -> Scheduler:
        """A scheduler for one study and model family.

        Costs microseconds, except for the import of Ray by the first that refines Ray's.

        Args:
            metric: the key of the objective in every result.
            mode: "max" or "min".
            max_steps: steps of a full trial (key `training_iteration`, from 1).
            seed: of all its random draws.
            mutations: what a scheduler with `mutates` may change; the others ignore it.
        """
