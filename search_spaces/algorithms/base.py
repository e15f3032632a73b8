"""What every algorithm is: a frozen specification that builds a searcher for one study."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, ClassVar

from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from search_spaces.direction import Mode
from search_spaces.errors import SpaceError, switch_for_number
from search_spaces.parameter_grid import Untried
from search_spaces.proposer import Proposer
from search_spaces.random_state import load
from search_spaces.searcher import RungSearcher, StudySearcher
from search_spaces.space import SearchSpace
from search_spaces.values import Configuration, PlainValue, Point

# Numbers of trials and of candidates that an option may name: a study has a million trials at most, and what is drawn
# for each suggestion has to fit into memory.
Trials = Annotated[int, Field(ge=1, le=1_000_000)]
Candidates = Annotated[int, Field(ge=1, le=100_000)]


class Algorithm(BaseModel, ABC):
    """A search algorithm and its options: a frozen value that can be compared, written to YAML and hashed.

    Subclasses set `name` as a literal with a default, add their options as fields, and implement `_proposer`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

    name: str = ""

    # Facts for the table in docs/algorithms.md and for the plan.
    title: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    requires: ClassVar[Mapping[str, str]] = {}  # module -> what pip installs
    learns: ClassVar[str] = "evaluated points, trials"  # begins with "nothing" where it learns nothing
    breaks_from: ClassVar[Mapping[str, str]] = {}  # distribution -> first version that does not work
    limits: ClassVar[str] = ""  # which versions work, what broke and how it was seen
    startup_option: ClassVar[str] = ""  # the option that says how many trials are drawn before the model is used

    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        if switch_for_number(value, cls.model_fields[info.field_name or ""].annotation):
            raise ValueError(f"{value!r} must be a number")
        return value

    def to_dict(self) -> dict[str, PlainValue]:
        """Name and the options that differ from their defaults; `parse` gives the same specification back."""
        return {"name": self.name, **self.model_dump(mode="json", exclude_defaults=True, exclude={"name"})}

    def check(self, space: SearchSpace, n_trials: int | None = None) -> None:
        """Refuse what cannot work, before anything starts and without importing the algorithm's library.

        Raises:
            SpaceError: the algorithm cannot search this space, its library is not installed, or the constraints refuse
                practically everything.
        """
        self._check_installed()
        self._check_constraints(space)

    def startup(self, space: SearchSpace, n_trials: int) -> int:
        """How many trials at least are drawn at random before the model proposes one; 0 where there is no such start.

        Given points are among them, and so are evaluated ones where `learns` says that the algorithm hears of them.
        """
        return 0

    def start_points(self, space: SearchSpace) -> list[Configuration]:
        """Return what the algorithm itself wants tried after the given points, before it proposes anything."""
        return []

    @property
    def full_trials_only(self) -> bool:
        """Whether a trial that its scheduler has stopped teaches it nothing."""
        return False

    def count(self, space: SearchSpace) -> int | None:
        """How many configurations its options leave to try, the default one included; None for all of the space."""
        return None

    @classmethod
    def installed(cls) -> bool:
        """Return whether the libraries it needs are here (their versions are not asked)."""
        return all(importlib.util.find_spec(module) is not None for module in cls.requires)

    def _check_installed(self) -> None:
        more = f" ({self.limits})" if self.limits else ""
        missing = [pip for module, pip in self.requires.items() if importlib.util.find_spec(module) is None]
        if missing:
            raise SpaceError(
                f"{self.name} needs a library that is not installed; pip install {' '.join(missing)}{more}"
            )
        for distribution, first in self.breaks_from.items():
            try:
                installed = version(distribution)
            except PackageNotFoundError:  # the module is there without its metadata
                continue
            if Version(installed) >= Version(first):
                raise SpaceError(
                    f"{self.name} does not work with {distribution} {installed}{more}; "
                    f"pip install {' '.join(self.requires.values())}",
                )

    def _check_constraints(self, space: SearchSpace) -> None:
        """All algorithms but the grid fall back on chance, which has to find something in the end."""
        if space.constraints:
            import numpy as np

            space.sample(np.random.default_rng(0))

    def build(
        self,
        space: SearchSpace,
        *,
        metric: str,
        mode: Mode,
        seed: int,
        n_trials: int | None = None,
        points: Sequence[Point] = (),
        evaluated: Sequence[tuple[Point, float]] = (),
        once: bool = False,
    ) -> StudySearcher:
        """Return a searcher for one study; cheap enough to make thousands.

        Args:
            space: the search space.
            metric: the key of the objective in the results told to the searcher.
            mode: "max" or "min".
            seed: everything drawn comes from it; the process-wide random states are never changed.
            n_trials: how many trials the study will have, for algorithms that plan ahead (not a limit).
            points: configurations to suggest first, in this order; what they leave out is set to its default.
            evaluated: configurations whose objective is known already, to learn from.
            once: of a space of 10,000 points or fewer, suggest each point once, and no more after the last.

        Raises:
            SpaceError: a point outside the space, or what `check` refuses.
        """
        if mode not in ("max", "min"):
            raise SpaceError(f"{mode!r} must be 'max' or 'min'", path="mode")
        self.check(space, n_trials)
        first = [_inside(space, point, f"points.{i}") for i, point in enumerate(points)]
        first += [config for config in self.start_points(space) if config not in first and space.allows(config)]
        try:
            load(self.requires)
        except ImportError as error:
            more = f"; {self.limits}" if self.limits else ""
            raise SpaceError(f"{self.name}'s library cannot be imported ({error}){more}") from error
        proposer = self._proposer(space, mode, seed, n_trials)
        for i, (point, value) in enumerate(evaluated):
            proposer.remember(_inside(space, point, f"evaluated.{i}"), float(value))
        untried = Untried(space.points, seed) if once and space.points is not None else None
        kind = RungSearcher if hasattr(proposer, "progress") else StudySearcher
        return kind(proposer, metric=metric, mode=mode, points=first, untried=untried)

    @abstractmethod
    def _proposer(self, space: SearchSpace, mode: Mode, seed: int, n_trials: int | None) -> Proposer:
        """Return what suggests and learns; the library is there by now."""


def _inside(space: SearchSpace, point: Point, path: str) -> Configuration:
    try:
        return space.complete(point)
    except SpaceError as error:
        raise error.under(path) from None
