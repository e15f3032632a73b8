"""A study in this process under schedulers that pause trials: suspended generators take turns.

The order follows Ray's controller with one slot: a pending trial is kept in hand as long as there are more, and the
scheduler chooses which pending or paused trial runs next.
"""

from __future__ import annotations

from collections.abc import Generator

from tuning.records.schema import FINISHED, STOPPED
from tuning.study.core import CONTINUE, STOP
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import ReplayError, TrialLoop
from tuning.study.trial import PAUSED, PENDING, RUNNING, Verdict


class InterleavedLoop(TrialLoop):
    """As `TrialLoop`, for any scheduler of Ray's. Such a study cannot be replayed: it restarts whole.

    A protected trial runs to its end at once, outside of its race.
    """

    _filling = False  # a population is being suggested, all of it before its first trial starts

    def _trials(self) -> Generator[LocalTrial, None, None]:
        if self._earlier:
            raise ReplayError("a scheduler that pauses trials needs all of them: such a study restarts whole.")
        while (trial := self._next()) is not None:
            self._advance(trial)
            while self.core.outbox:
                yield self.core.outbox.popleft()
        self._end_waiting()
        while self.core.outbox:
            yield self.core.outbox.popleft()

    def _next(self) -> LocalTrial | None:
        """The trial that runs next, in whichever race; None when none can."""
        core = self.core
        while True:
            core.ask_rules()
            if core.stopped_by:
                return None
            if self._filling or not any(
                trial.status == PENDING for race in core.races.values() for trial in race.trials
            ):
                trial = self._ask()
                if trial is not None:
                    race = core.race(trial)
                    if trial.number in core.protect:
                        return trial
                    trial.schedule = ((0, dict(trial.config)),)
                    core.enter(trial)
                    self._filling = self._filling or getattr(race.scheduler, "population", False)
                    continue
                self._filling = False
                if self.core.stopped_by:
                    return None
            for race in core.races.values():
                if race.trials and (chosen := core.choose(race)) is not None:
                    return chosen
            return None

    def _advance(self, trial: LocalTrial) -> None:
        """Let a trial run until its scheduler pauses or stops it, or it ends."""
        core = self.core
        if not trial.racing:
            self._run_through(trial)
            return
        if trial.status == PENDING:
            self._begin(trial)
        trial.status = RUNNING
        if core.complete(trial):
            self._end(trial)
            return
        while (step := self._pull(trial)) is not None:
            decision = core.step(trial, step)
            if decision == STOP:
                break
            if decision != CONTINUE or trial.status != RUNNING:
                trial.status = PAUSED
                if core.complete(trial) and not core.race(trial).scheduler.population:
                    trial.release()  # nothing left to train; the scheduler still counts it
                return
        self._end(trial)

    def _end(self, trial: LocalTrial) -> None:
        self.core.end(trial)

    def _end_waiting(self) -> None:
        """A rule has ended the study, or the scheduler waits for something that will not come."""
        for race in self.core.races.values():
            for trial in list(race.trials):
                if trial.is_finished():
                    continue  # its scheduler has ended it when it heard of another one's end
                if not trial.steps:
                    race.forget(trial)
                    continue
                if self.core.complete(trial):
                    trial.verdict = Verdict(FINISHED)
                else:
                    waiting = f"{type(race.scheduler).__name__} paused it after step {trial.steps[-1].step} for good"
                    trial.verdict = Verdict(STOPPED, self.core.stopped_by or waiting)
                self._end(trial)
