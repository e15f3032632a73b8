"""A search space: named parameters, their conditions and constraints, independent of any library."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from search_spaces import conditions, documents
from search_spaces.constraints import Constraint, constraint_name
from search_spaces.errors import SpaceError, did_you_mean
from search_spaces.parameter_grid import MOST_LEVELS, ParameterGrid
from search_spaces.parameters import Constant, Parameter
from search_spaces.ray_tune import convert, has_domain
from search_spaces.values import Configuration, PlainValue, Point, own_copy

MOST_PARAMETERS = 1000
# Chance of not finding a point when one in a hundred is allowed: 0.99 ** 2000, below 1e-8.
ATTEMPTS = 2000


if TYPE_CHECKING:
    import numpy as np

# What a pickled space consists of.
PickledSpace = tuple[tuple[Parameter, ...], tuple[Constraint, ...]]


class SearchSpace:
    """Named parameters of which some exist only under a condition.

    A configuration is a flat dict from name to a plain Python value, holding the parameters that exist and
    no others. Values never change after construction; equality and `fingerprint` follow what algorithms draw from,
    not the sentences about it.

    Args:
        parameters: `Float`, `Int`, `Choice` and `Constant`, each after the parameters its condition names.
            Two may share a name if their conditions exclude each other.
        constraints: functions of a configuration that return whether it may be tried; give module-level
            functions to be able to write the space to YAML.

    Raises:
        SpaceError: no parameter or more than 1,000, a condition on an unknown or later parameter, conditions in a
            circle, two parameters of one name that can exist together.
    """

    def __init__(self, parameters: Iterable[Parameter], constraints: Sequence[Constraint] = ()) -> None:
        self.parameters: tuple[Parameter, ...] = tuple(parameters)
        self.constraints: tuple[Constraint, ...] = tuple(constraints)
        if not self.parameters:
            raise SpaceError(
                "the search space has no parameter; add one, as in alpha: {type: float, low: 0.1, high: 10}",
                path="parameters",
            )
        if len(self.parameters) > MOST_PARAMETERS:
            raise SpaceError(
                f"{len(self.parameters):,} parameters are more than {MOST_PARAMETERS:,}; keep those that matter",
                path="parameters",
            )
        for index, parameter in enumerate(self.parameters):
            if not isinstance(parameter, Parameter):
                raise SpaceError(
                    f"{parameter!r} is not a parameter; use Float, Int, Choice or Constant (a Ray Tune "
                    "space is converted by SearchSpace.from_ray_tune)",
                    path=f"parameters.{index}",
                )
        for index, constraint in enumerate(self.constraints):
            if not callable(constraint):
                raise SpaceError(f"{constraint!r} is not a function of a configuration", path=f"constraints.{index}")
        try:
            conditions.check(self.parameters)
        except SpaceError as error:
            raise error.under("parameters") from None
        self.labelled: dict[str, Parameter] = conditions.labels(self.parameters)
        self.branches = conditions.branches(self.labelled)
        self._by_name: dict[str, list[Parameter]] = {}
        for parameter in self.parameters:
            self._by_name.setdefault(parameter.name, []).append(parameter)
        self._fingerprint: str | None = None
        # (name, value at u, condition or None): the whole inner loop of sampling.
        self._draws = [(p.name, p.at, dict(p.when) or None) for p in self.parameters]

    # --- points ---------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator) -> Configuration:
        """Return one configuration, each existing parameter uniform in its own scale.

        Consumes the same number of draws whatever the branch (times the number of attempts under
        constraints), so that a stream stays comparable between configurations.

        Raises:
            SpaceError: the constraints refuse practically everything.
        """
        count = len(self._draws)
        for _ in range(ATTEMPTS):
            config = self.at(rng.random(count).tolist())
            if self.allows(config):
                return config
        raise SpaceError(
            f"the constraints refused {ATTEMPTS} random configurations in a row; loosen them or narrow the ranges",
            path="constraints",
        )

    def at(self, units: Sequence[float]) -> Configuration:
        """Return the configuration at a point of the unit cube, a coordinate per parameter, constraints unasked."""
        config: Configuration = {}
        for (name, at, when), u in zip(self._draws, units, strict=True):
            if when is None or conditions.holds(when, config):
                config[name] = at(u)
        return config

    def allows(self, config: Configuration) -> bool:
        """Return whether the constraints allow a configuration.

        Raises:
            SpaceError: a constraint raised; its own error is the cause.
        """
        for index, constraint in enumerate(self.constraints):
            try:
                if not constraint(own_copy(config)):
                    return False
            except SpaceError:  # of one that no file can bring back
                raise
            except (Exception, SystemExit) as error:  # a sys.exit() must not pass for success
                raise SpaceError(
                    f"the constraint raised {type(error).__name__}: {error} for {config}; it must return true "
                    "or false for every configuration (conditional parameters may be absent: use config.get)",
                    path=f"constraints.{index}",
                ) from error
        return True

    def existing(self, config: Point) -> dict[str, Parameter]:
        """Return label -> parameter for those that exist in a (complete) configuration, in order."""
        known: Configuration = {}
        found: dict[str, Parameter] = {}
        for label, parameter in self.labelled.items():
            if conditions.holds(parameter.when, known) and parameter.name in config:
                known[parameter.name] = config[parameter.name]
                found[label] = parameter
        return found

    def check(self, config: Point) -> None:
        """Refuse a configuration that is not in the space.

        Raises:
            SpaceError: names the parameter, its value and what it may be.
        """
        if not isinstance(config, Mapping):
            raise SpaceError(f"{config!r} is not a configuration; write parameter: value")
        known: Configuration = {}
        for parameter in self.parameters:
            if not conditions.holds(parameter.when, known):
                continue
            if parameter.name not in config:
                raise SpaceError(f"is missing; it is {parameter.describe()}", path=parameter.name)
            value = config[parameter.name]
            if not parameter.contains(value):
                raise SpaceError(f"{value!r} is not inside: {parameter.describe()}", path=parameter.name)
            known[parameter.name] = value
        for name in config:
            if name not in known:
                raise SpaceError(self._stranger(name, known), path=str(name))
        if not self.allows(dict(config)):
            raise SpaceError(f"the constraints do not allow {dict(config)}")

    def _stranger(self, name: str, known: Configuration) -> str:
        if name not in self._by_name:
            return f"there is no such parameter{did_you_mean(name, list(self._by_name))}; remove it"
        needed = " or ".join(conditions.text(parameter.when) for parameter in self._by_name[name])
        return f"does not exist here: it needs {needed}, and the configuration has {known}; remove it"

    def contains(self, config: Point) -> bool:
        """Return whether a configuration holds exactly the parameters that exist, within bounds and constraints."""
        try:
            self.check(config)
        except SpaceError:
            return False
        return True

    def complete(self, point: Point) -> Configuration:
        """Return a point with the defaults of whatever it leaves out, as plain Python values in the space's order.

        Raises:
            SpaceError: the result is not in the space.
        """
        if not isinstance(point, Mapping):
            raise SpaceError(f"{point!r} is not a configuration; write parameter: value")
        config: Configuration = {}
        for parameter in self.parameters:
            if conditions.holds(parameter.when, config):
                given = point.get(parameter.name, parameter.default)
                config[parameter.name] = _as_declared(parameter, given)
        strangers = {name: value for name, value in point.items() if name not in config}
        self.check({**config, **strangers})
        return config

    def default(self) -> Configuration:
        """Return the default configuration.

        Raises:
            SpaceError: the constraints do not allow it.
        """
        try:
            return self.complete({})
        except SpaceError as error:
            raise error.under("default") from error

    def grid(self, levels: int | Mapping[str, int] = 5) -> ParameterGrid:
        """Return all combinations in a fixed order, made one at a time; its size is known without making them.

        Args:
            levels: values per float or int (of which a stepped or small one may have fewer), for all or by
                name.
        """
        return ParameterGrid(self.parameters, self.allows, levels)

    def nest(self, config: Point) -> Configuration:
        """Return a configuration in the shape of the Ray Tune space it came from; otherwise a plain copy."""
        nested: Configuration = {}
        for parameter in self.existing(config).values():
            path = parameter.nested or (parameter.name,)
            if path == ("",):
                continue  # which branch was taken: no value that the training function knows
            place = nested
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = config[parameter.name]
        return nested

    # --- the space as a whole -------------------------------------------------------------------

    @property
    def searched(self) -> int:
        """The number of parameters that vary."""
        return sum(not parameter.single for parameter in self.parameters)

    @cached_property
    def points(self) -> ParameterGrid | None:
        """All points; None where there are more than 10,000."""
        sizes = [parameter.size for parameter in self.parameters]
        if any(size is None or size > MOST_LEVELS for size in sizes):
            return None
        try:
            found = self.grid(MOST_LEVELS)
        except SpaceError:  # even the values that conditions name are too many
            return None
        return found if found.size <= MOST_LEVELS else None

    @property
    def conditional(self) -> bool:
        """Whether any parameter exists only under a condition."""
        return any(parameter.when for parameter in self.parameters)

    def describe(self) -> str:
        """Return one line per parameter, indented below the condition under which it exists."""
        width = max(len(parameter.name) for parameter in self.parameters)
        lines: list[str] = []
        for branch in self.branches:
            if branch.when:
                lines.append(f"when {conditions.text(branch.when)}:")
            margin = "  " if branch.when else ""
            for label in branch.labels:
                parameter = self.labelled[label]
                why = f"  # {parameter.why}" if parameter.why else ""
                lines.append(f"{margin}{parameter.name:<{width}}  {parameter.describe()}{why}")
        lines += [f"constraint: {constraint_name(constraint)}" for constraint in self.constraints]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, PlainValue]:
        """Return the YAML form: plain values only (see `search_spaces.json_schema`)."""
        return documents.space_to_dict(self.parameters, self.constraints)

    @classmethod
    def from_dict(cls, mapping: object) -> SearchSpace:
        """Return a space from its YAML form.

        Raises:
            SpaceError: names the path of the field, the value and the way out.
        """
        parameters, constraints = documents.space_from_dict(mapping)
        return cls(parameters, constraints)

    @classmethod
    def parse(cls, value: object) -> SearchSpace:
        """A space of whatever form: a `SearchSpace`, the YAML form with or without `parameters`, or a dict of Ray
        Tune's domains or Optuna's distributions.

        Raises:
            SpaceError: what `from_dict` or `from_ray_tune` refuses.
        """
        if isinstance(value, SearchSpace):
            return value
        if isinstance(value, Mapping):
            if has_domain(value):
                return cls.from_ray_tune(value)
            if "parameters" not in value:
                spelt_out = not value or any(isinstance(entry, Mapping) for entry in value.values())
                return cls.from_dict({"parameters": dict(value)}) if spelt_out else cls.from_ray_tune(value)
        return cls.from_dict(value)

    @classmethod
    def from_ray_tune(cls, param_space: Mapping[str, object]) -> SearchSpace:
        """Return a space from `tune.uniform` and the like; `nest` gives configurations back in the original shape.

        Raises:
            SpaceError: a domain without bounds (`randn`), `sample_from`, `grid_search` over something
                unordered.
        """
        return cls(convert(param_space))

    def fingerprint(self) -> str:
        """16 hexadecimal digits that change when what algorithms draw from changes (sentences do not count)."""
        if self._fingerprint is None:
            document = documents.space_to_dict(self.parameters, self.constraints, prose=False, code=True)
            self._fingerprint = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchSpace):
            return NotImplemented
        return self.fingerprint() == other.fingerprint()

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __repr__(self) -> str:
        names = list(self._by_name)
        shown = ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
        return f"SearchSpace({shown})"

    def __getstate__(self) -> PickledSpace:
        return (self.parameters, self.constraints)

    def __setstate__(self, state: PickledSpace) -> None:
        self.__init__(*state)  # type: ignore[misc]  # all else is made from these


def _as_declared(parameter: Parameter, value: Any) -> Any:
    """The value in the parameter's own type (1 becomes 1.0 for a float); strange ones are `check`'s to refuse."""
    if isinstance(parameter, Constant) or not parameter.contains(_item(value)):
        return value
    value = _item(value)
    if parameter.kind == "float":
        return float(value)
    if parameter.kind == "int":
        return int(value)
    return parameter.value(parameter.index(value))


def _item(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
