"""What a stopping rule is: a frozen spec, and the stopper that it builds for one study."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from schedulers.direction import Mode
from schedulers.errors import SchedulerError, complaints, did_you_mean, switch_for_number
from schedulers.protocols import Reason, TrialResult


class RuleSpec(BaseModel, ABC):
    """Base of all rules' specs. A subclass in its own file of this package is a new rule.

    Attributes:
        name: the word used in definitions.
        summary: one sentence for the table.
        short: the option that a plain value is for, as in `target: 0.95`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    summary: ClassVar[str]
    short: ClassVar[str]

    @classmethod
    def from_options(cls, value: object) -> Self:
        """The spec from a mapping of options or the short form; `SchedulerError` names what is wrong."""
        options = dict(value) if isinstance(value, Mapping) else {cls.short: value}
        for option in options:
            if option not in cls.model_fields:
                hint = did_you_mean(str(option), cls.model_fields)
                raise SchedulerError(f"stopping rule {cls.name}: unknown option {option!r}; {hint}")
        try:
            return cls.model_validate(options)
        except ValidationError as error:
            raise SchedulerError(f"stopping rule {cls.name}: {complaints(error)}") from None

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        if switch_for_number(value, cls.model_fields[info.field_name or ""].annotation):
            raise ValueError("must be a number")
        return value

    def to_dict(self) -> dict[str, object]:
        """All options by name."""
        return self.model_dump(mode="json")

    @abstractmethod
    def build(self, *, metric: str, mode: Mode) -> StudyStopper:
        """Return a stopper for one study."""


class StudyStopper:
    """A rule at work in one study, with the methods of a `ray.tune.Stopper`. By default it stops nothing."""

    def __call__(self, trial_id: str, result: TrialResult) -> bool:
        """Whether this trial, which has just reported, is to end."""
        return False

    def stop_all(self) -> bool:
        """Whether the study is to end."""
        return self.study_reason() is not None

    def on_trial_end(self, trial_id: str, finished: bool, score: float | None) -> None:
        """A trial has ended: whether with its full budget, and with which score."""

    def on_replay(self, seconds: float) -> None:
        """A trial of an earlier attempt is about to be replayed; it took so many seconds then."""

    def reason(self, trial_id: str) -> Reason | None:
        """Return why the trial was ended by this rule."""

    def study_reason(self) -> Reason | None:
        """Return why the study is to end; None while it is not."""
