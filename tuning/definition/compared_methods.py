"""What is compared: an algorithm, its scheduler if it has one, and the label that names both in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, PlainValidator, model_validator

import schedulers
from schedulers import SchedulerSpec
from search_spaces import SpaceError, algorithms
from search_spaces.algorithms import Algorithm
from search_spaces.yaml_text import parse_yaml
from tuning.basics.wording import amount
from tuning.definition.options import Options
from tuning.definition.reach import PLAIN, PlainText
from tuning.errors import PlanError

WITHOUT_SCHEDULER = "fifo"
MOST_METHODS = 100


@dataclass(frozen=True)
class Method:
    """One side of a comparison.

    Attributes:
        label: names it in the report; unique in a comparison.
        algorithm: proposes the configurations.
        scheduler: may stop trials early.
        repeat: 0, or 2, 3, … of the same method given again: it draws other numbers, so that it shows what luck does.
    """

    label: str
    algorithm: Algorithm
    scheduler: SchedulerSpec
    repeat: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return plain values; `parse_methods` gives the same methods back."""
        return {"label": self.label, "algorithm": self.algorithm.to_dict(), "scheduler": self.scheduler.to_dict()}


def _methods(value: object) -> tuple[Method, ...]:
    try:
        return parse_methods(value)
    except PlanError as error:
        raise ValueError(str(error)) from error


class CompareOptions(Options):
    """What a definition compares: its studies are then customers × algorithms × seeds."""

    algorithms: Annotated[tuple[Method, ...], PLAIN, PlainValidator(_methods)] = Field(
        description="Two or more algorithms: `optuna`, `optuna+asha` (with a scheduler), or `{algorithm: …, "
        "scheduler: …, label: …}`. Without a scheduler every trial runs to its end.",
    )
    seeds: int = Field(
        10,
        ge=1,
        le=10_000,
        description="How many studies every algorithm gets per customer, each with another seed.",
    )
    baseline: PlainText | None = Field(
        None, description="Label of the algorithm that the others are tested against. By default it is the best one."
    )
    seconds: float | None = Field(
        None, gt=0, description="Wall time of every study in seconds, as the budget in place of `trials`."
    )

    @model_validator(mode="after")
    def _baseline_takes_part(self) -> CompareOptions:
        labels = [method.label for method in self.algorithms]
        if self.baseline is not None and self.baseline not in labels:
            raise ValueError(f"the baseline {self.baseline!r} is not among the algorithms: {', '.join(labels)}")
        return self

    @property
    def axis(self) -> str:
        """Unit of the budget, which the verdict is about: "trials" or "seconds"."""
        return "trials" if self.seconds is None else "seconds"


def parse_methods(given: object) -> tuple[Method, ...]:
    """Return methods from a comma-separated text or a list.

    Each is `optuna`, `optuna+asha` (with a scheduler), or a mapping: the algorithm's name and options, or `algorithm`
    with optional `scheduler` and `label`. Without a scheduler every trial runs to its end. In a text, mappings are
    written as YAML: `random, optuna+asha, {name: optuna, sampler: gp}`. The same method given twice becomes `…#2`.

    Raises:
        PlanError: fewer than two methods, an unknown name or option, a pair that does not work, a missing extra.
    """
    items = _items(given)
    if len(items) > MOST_METHODS:
        raise PlanError(f"A comparison of {amount(len(items), 'algorithm')} is too much; name {MOST_METHODS} at most.")
    methods: dict[str, Method] = {}
    for item in items:
        method = item if isinstance(item, Method) else parse_method(item)
        same = sum((it.algorithm, it.scheduler) == (method.algorithm, method.scheduler) for it in methods.values())
        if same:
            label = f"{method.label}#{same + 1}" if method.label in methods else method.label
            method = replace(method, label=label, repeat=same + 1)
        if method.label in methods:
            raise PlanError(f"Two different algorithms are labelled {method.label!r}; give one of them another label.")
        methods[method.label] = method
    if len(methods) < 2:
        named = f"there is only {next(iter(methods))!r}" if methods else "there is none"
        raise PlanError(f"A comparison needs two algorithms or more; {named}. Example: --algorithms random,optuna")
    return tuple(methods.values())


def parse_method(given: str | Mapping[str, object]) -> Method:
    """Return one method; see `parse_methods`."""
    label, algorithm, scheduler = _parts(given)
    try:
        method = Method(label, algorithms.parse(algorithm), schedulers.parse(scheduler or WITHOUT_SCHEDULER))
        method.algorithm._check_installed()
    except (SpaceError, schedulers.SchedulerError) as error:
        raise PlanError(f"Algorithm {label!r}: {error}") from error
    refusal = schedulers.check(method.scheduler, method.algorithm.name, algorithms.unlearning())
    if refusal:
        raise PlanError(f"Algorithm {label!r}: {refusal}.")
    return method


def _items(given: object) -> list[str | Mapping[str, object] | Method]:
    if not isinstance(given, str):
        if not isinstance(given, Iterable) or isinstance(given, Mapping):
            raise PlanError(f"The algorithms {given!r} are not a list. Example: [random, optuna+asha]")
        items = list(given)
    else:
        try:
            items = parse_yaml(f"[{given}]", f"the text {given!r}")
        except SpaceError as error:
            raise PlanError(f"The algorithms cannot be read: {error}. Example: random,optuna+asha") from error
    wrong = [item for item in items if not isinstance(item, str | Mapping | Method)]
    if wrong:
        raise PlanError(f"The algorithms {given!r} cannot be read: {wrong[0]!r} is neither a name nor a mapping.")
    return items


def _parts(given: str | Mapping[str, object]) -> tuple[str, object, object]:
    """Return label, algorithm and scheduler."""
    if isinstance(given, str):
        name, _, stopper = given.partition("+")
        return given, name.strip(), stopper.strip() or None
    options = {str(key): value for key, value in given.items() if key not in ("label", "algorithm", "scheduler")}
    algorithm, scheduler = given.get("algorithm", options), given.get("scheduler")
    if not isinstance(label := given.get("label") or _label(algorithm, scheduler), str):
        raise PlanError(f"The algorithm {dict(given)!r} has the label {label!r}, which is not text.")
    if "algorithm" in given and options:
        raise PlanError(f"The algorithm {dict(given)!r} has {', '.join(options)} beside `algorithm`; put them inside.")
    return label, algorithm, scheduler


def _label(algorithm: object, scheduler: object) -> str:
    """Return a readable label from names and options."""
    parts = []
    for part in (algorithm, scheduler):
        if part is None:
            continue
        if isinstance(part, Mapping):
            options = ",".join(f"{key}={value}" for key, value in part.items() if key != "name")
            parts.append(f"{part.get('name')}({options})" if options else str(part.get("name")))
        else:
            parts.append(str(getattr(part, "name", part)))
    return "+".join(parts)
