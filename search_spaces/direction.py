"""Which scores are better, and where a score is turned for that: a loss is smaller where it is better."""

from __future__ import annotations

from typing import Literal, Protocol, Self, TypeVar

Mode = Literal["max", "min"]


class Negatable(Protocol):
    """What has a sign: a number, or an array of them."""

    def __neg__(self) -> Self: ...


N = TypeVar("N", bound=Negatable)


def loss_of(score: N, mode: str) -> N:
    """Return a score turned so that smaller is better; applied twice it returns the score.

    mode: "min" where smaller scores are better, else "max".
    """
    return score if mode == "min" else -score


def worth_of(score: N, mode: str) -> N:
    """Return a score turned so that larger is better; applied twice it returns the score. mode: see `loss_of`."""
    return score if mode == "max" else -score
