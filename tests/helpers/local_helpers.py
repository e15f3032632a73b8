"""Helpers in this process: they answer in an order of their own, and some of them die."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tuning.basics.timing import USUAL
from tuning.study.helpers import HelperAnswered, HelperLost, HelperReady, HelperTrainer, TrainingRequest


class LocalLink:
    """As a link to helpers elsewhere. Which of those that work answers next is drawn.

    kills: requests, counted from 0, in which the helper dies before it answers. gone: helpers that nobody replaces.
    """

    def __init__(
        self, start: Any, size: int, seed: int = 0, kills: Sequence[int] = (), gone: Sequence[int] = ()
    ) -> None:
        self.size, self.sent, self.most_at_once = size, 0, 0
        self._make: Callable[[], HelperTrainer] = lambda: HelperTrainer(start, USUAL)
        self._random, self._kills, self._gone = random.Random(seed), kills, gone
        self._trainers: dict[int, HelperTrainer] = {}
        self._starting = list(range(size))
        self._working: dict[int, tuple[TrainingRequest, Any, bool]] = {}

    def send(self, helper: int, request: TrainingRequest, state: object) -> None:
        assert helper not in self._working
        self._working[helper] = request, state, self.sent in self._kills
        self.sent += 1
        self.most_at_once = max(self.most_at_once, len(self._working))

    def wait(self) -> Sequence[HelperReady | HelperAnswered | HelperLost]:
        if self._starting:
            helper = self._starting.pop(self._random.randrange(len(self._starting)))
            self._trainers[helper] = self._make()
            return [HelperReady(helper)]
        helper = self._random.choice(sorted(self._working))
        request, state, dies = self._working.pop(helper)
        if dies:
            if helper in self._gone:
                return [HelperLost(helper, for_good=True)]
            self._starting.append(helper)
            return [HelperLost(helper)]
        return [HelperAnswered(helper, *self._trainers[helper].train(request, state))]
