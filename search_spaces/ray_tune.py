"""Ray Tune's spaces as ours: `tune.uniform` and the like, nested dictionaries, and choices between dictionaries.

Optuna's distributions may stand in place of Ray's domains.

Names are flat here: `{"model": {"lr": …}}` becomes `model__lr` and remembers its place, so that
`SearchSpace.nest` gives a training function what it had under Ray. A choice between dictionaries becomes a
choice and the parameters of its branches under a condition; where every branch says its own name (`{"kind":
"rf", …}`), that key is the choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from search_spaces.errors import SpaceError
from search_spaces.optuna_parameters import is_distribution, parameter_of
from search_spaces.parameters import Choice, Constant, Float, Int, Parameter
from search_spaces.values import When, check_name, plain, usable_name

if TYPE_CHECKING:
    from ray.tune.search.sample import Domain

#: An entry of a Ray Tune space: a domain, a mapping, a list or a plain value.
Entry: TypeAlias = Any

_OURS = ("float", "int", "choice", "constant")
HIDDEN = ("",)  # which branch was taken: a value that no training function asked for


def convert(param_space: object) -> list[Parameter]:
    """Return the parameters of a Ray Tune space.

    Raises:
        SpaceError: a normal distribution, `sample_from`, `eval`, a domain inside a list, a pair of numbers, a key
            that is not text.
    """
    if not isinstance(param_space, Mapping):
        raise SpaceError(f"{param_space!r} is not a Ray Tune space; give a dict of name to tune.uniform(…) and such")
    found = list(_walk(param_space, (), {}))
    for each in found if all(isinstance(one, Constant) for one in found) else ():
        if isinstance(each.default, list):  # as in scikit-learn's grids, and others' ranges
            raise SpaceError(
                f"{each.default!r} is a constant, and nothing varies; for a choice write tune.choice([…]), in YAML "
                "{type: choice, values: […]}",
                path=each.name,
            )
    return found


def _walk(entries: Mapping[object, Entry], path: tuple[str, ...], when: When) -> Iterator[Parameter]:
    for key, entry in entries.items():
        if not isinstance(key, str):
            raise SpaceError(f"the key {key!r} is not text; write {usable_name(key)!r}", path=".".join(path))
        try:
            check_name(key)
        except SpaceError as error:
            raise error.under(".".join(path)) if path else error from None
        yield from _entry((*path, key), entry, when)


def _entry(path: tuple[str, ...], entry: Entry, when: When) -> Iterator[Parameter]:
    name = "__".join(path)
    if isinstance(entry, Mapping) and set(entry) == {"grid_search"}:
        yield from _choice(path, entry["grid_search"], when)
    elif isinstance(entry, Mapping) and entry.get("type") in _OURS and entry.keys() & {"low", "values", "value"}:
        raise SpaceError(
            f"{dict(entry)!r} is a parameter in YAML form inside a Ray Tune space; write all of them in one form",
            path=name,
        )
    elif isinstance(entry, Mapping) and entry:
        yield from _walk(entry, path, when)
    elif is_distribution(entry):
        yield parameter_of(name, entry, when, _place(path))
    elif _is_domain(entry):
        yield from _domain(path, entry, when)
    elif isinstance(entry, list | tuple) and any(map(has_domain, entry)):
        raise SpaceError("a list that holds domains has no names for them; give each its own key", path=name)
    elif isinstance(entry, list | tuple) and len(entry) == 2 and all(map(_is_number, entry)) and plain(entry, name):
        low, high = sorted(entry)
        raise SpaceError(
            f"{entry!r} may be a range or a constant; for a range write tune.uniform({low!r}, {high!r}), in YAML "
            f"{{type: float, low: {low!r}, high: {high!r}}}, for a constant tune.choice([{list(entry)!r}]), in YAML "
            f"{{type: constant, value: {list(entry)!r}}}",
            path=name,
        )
    else:
        yield Constant(name, entry, when=when, nested=_place(path))


def _domain(path: tuple[str, ...], domain: Domain, when: When) -> Iterator[Parameter]:
    from ray.tune.search import sample

    name = "__".join(path)
    if isinstance(domain, sample.Categorical):
        yield from _choice(path, domain.categories, when)
        return
    if isinstance(domain, sample.Function):
        raise SpaceError(
            "sample_from hides its values in a function, which no algorithm can search; write the range itself, and "
            "compute what follows from it in the training function",
            path=name,
        )
    sampler, q = domain.get_sampler(), None
    if isinstance(sampler, sample.Quantized):
        sampler, q = sampler.sampler, sampler.q
    log = isinstance(sampler, sample.LogUniform)
    if not log and not isinstance(sampler, sample.Uniform):
        raise SpaceError(
            f"{type(sampler).__name__.strip('_').lower()} distributions have no bounds; use tune.uniform with the "
            "range that matters",
            path=name,
        )
    shared: dict[str, Any] = {"log": log, "when": when, "nested": _place(path)}
    if isinstance(domain, sample.Integer):
        step = int(q) if q is not None and q != 1 else None
        # Ray's upper bounds are exclusive, unless quantized by more than 1; then both round inwards.
        low = domain.lower if step is None else math.ceil(domain.lower / step) * step
        high = domain.upper - 1 if step is None else math.floor(domain.upper / step) * step
        yield Int(name, low, high, step=step, **shared)
    else:
        yield Float(name, domain.lower, domain.upper, step=q, **shared)


def _choice(path: tuple[str, ...], categories: Entry, when: When) -> Iterator[Parameter]:
    name = "__".join(path)
    if not isinstance(categories, list | tuple):
        raise SpaceError(f"{categories!r} is not a list of values", path=name)
    if not any(map(has_domain, categories)) and not any(isinstance(c, Mapping) for c in categories):
        yield Choice(name, list(categories), when=when, nested=_place(path))
        return
    key = _telling_key(categories)
    if key is not None:
        choice = Choice(f"{name}__{key}", [c[key] for c in categories], when=when, nested=_place((*path, key)))
    else:
        choice = Choice(f"{name}__choice", list(range(len(categories))), when=when, nested=HIDDEN)
    yield choice
    for value, category in zip(choice.values, categories, strict=True):
        rest = {k: v for k, v in category.items() if k != key} if isinstance(category, Mapping) else category
        if rest or key is None:
            yield from _entry(path, rest, {**when, choice.name: value})


def _telling_key(categories: Sequence[Mapping[str, Entry]]) -> str | None:
    """Return the first key under which every branch has a scalar of its own."""
    if not all(isinstance(category, Mapping) for category in categories):
        return None
    for key in categories[0]:
        values = [category.get(key) for category in categories]
        if all(isinstance(v, str | int | float) for v in values) and len(set(values)) == len(values):
            return str(key)
    return None


def _is_number(entry: Entry) -> bool:
    return isinstance(entry, int | float) and not isinstance(entry, bool)


def _is_domain(entry: Entry) -> bool:
    # By name, so that a space without domains does not import Ray.
    return any(
        kind.__name__ == "Domain" and kind.__module__ == "ray.tune.search.sample" for kind in type(entry).__mro__
    )


def has_domain(entry: Entry) -> bool:
    """Return whether something holds `tune.uniform`, a distribution of Optuna or `tune.grid_search`, at any depth."""
    if isinstance(entry, Mapping):
        return set(entry) == {"grid_search"} or any(map(has_domain, entry.values()))
    return (
        _is_domain(entry) or is_distribution(entry) or (isinstance(entry, list | tuple) and any(map(has_domain, entry)))
    )


def _place(path: tuple[str, ...]) -> tuple[str, ...]:
    return path if len(path) > 1 else ()
