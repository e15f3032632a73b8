"""A constraint's part of a fingerprint: what the function does and was made with, the same in every process."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from paths import ROOT

from search_spaces import Float, SearchSpace


class Below:
    def __init__(self, limit: float) -> None:
        self.limit = limit

    def __call__(self, config: dict[str, Any]) -> bool:
        return bool(config["x"] < self.limit)

    def holds(self, config: dict[str, Any]) -> bool:
        return self(config)


def below(limit: float, config: dict[str, Any]) -> bool:
    return bool(config["x"] < limit)


def closed_over(thing: Any) -> Callable[..., Any]:
    return lambda config: thing is not config


def fingerprint(constraint: Callable[..., Any]) -> str:
    return SearchSpace([Float("x", 0, 1)], [constraint]).fingerprint()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda config, limit=0.3: config["x"] < limit, lambda config, limit=0.4: config["x"] < limit),
        (lambda config, *, limit=0.3: config["x"] < limit, lambda config, *, limit=0.4: config["x"] < limit),
        (functools.partial(below, 0.3), functools.partial(below, 0.4)),
        (functools.partial(below, limit=0.3), functools.partial(below, limit=0.4)),
        (Below(0.3), Below(0.4)),
        (Below(0.3).holds, Below(0.4).holds),
        (closed_over(0.3), closed_over(0.4)),
        (closed_over(Below(0.3)), closed_over(Below(0.4))),
        (closed_over(below), closed_over(fingerprint)),
    ],
)
def test_what_a_constraint_was_made_with_is_part_of_the_fingerprint(
    one: Callable[..., Any], other: Callable[..., Any]
) -> None:
    assert fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.long
def test_a_fingerprint_is_the_same_in_every_process() -> None:
    """Sets have another order in every process, objects another address."""
    code = (
        "from search_spaces import Choice, SearchSpace\n"
        "class Thing: pass\n"
        "def made(thing): return lambda config: config['c'] in {'red', 'green', 'blue', 'black'} or thing\n"
        "space = SearchSpace([Choice('c', ['red', 'white'])], [made(object()), made(Thing()), made({'u', 'v', 'w'})])\n"
        "print(space.fingerprint())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]


def test_a_constraint_that_knows_itself_has_a_fingerprint() -> None:
    def again(config: dict[str, Any]) -> bool:
        return config["x"] > 0 or again({"x": 1})

    thing = Below(1)
    thing.itself = thing
    assert fingerprint(again) == fingerprint(again)
    assert fingerprint(thing) == fingerprint(thing)


def test_a_partial_function_is_shown_by_its_name() -> None:
    space = SearchSpace([Float("x", 0, 1)], [functools.partial(below, 0.3)])
    assert space.describe().endswith(":below")
    assert space.to_dict()["constraints"][0].partition("#")[0].endswith(":below")
    assert "#" in space.to_dict()["constraints"][0]  # the name alone does not bring it back
