"""One spread study while it runs: its searcher, its schedulers, its trials, and the journal of what happened.

Trials of one study run at the same time, so the order of events is part of the truth: a searcher's suggestion
depends on what it was told before, a scheduler's decision on what other trials had reported. Every event is
numbered; replaying them in order puts a new searcher and new schedulers where the old ones were.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuning.definition.options import WarmStart
from tuning.errors import StudyError
from tuning.execution.cluster import worker_died
from tuning.execution.spread.spread_trial import SpreadTrial
from tuning.records.schema import FAILED, FINISHED, STOPPED, StepRecord, TrialRecord
from tuning.seeds import derive, trial_seed
from tuning.study.loop import STEP, same_config
from tuning.study.recorded_study import versions
from tuning.study.study import SCORE, Study
from tuning.study.warm_start import searcher_points

SUGGEST, RESULT, SAVE, END, OVER = "suggest", "result", "save", "end", "over"
NO_TRIAL = -1
DEATHS = "a crash, a time limit or too much memory"
BROKEN = "a part of its journal is damaged or deleted: what is recorded counts, nothing more is tried"
LOST = ("why it failed stood in a record that is damaged or deleted", None)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal. order: position in the study. detail: by kind, see `SpreadStudy`."""

    study: str
    order: int
    kind: str
    trial: int
    detail: Mapping[str, Any]


class SpreadView:
    """What a scheduler may see of the controller: the trials of its own study."""

    def __init__(self, study: SpreadStudy) -> None:
        self._study = study

    def get_trials(self) -> list[SpreadTrial]:
        return list(self._study.live.values())

    def get_live_trials(self) -> set[SpreadTrial]:
        return set(self._study.live.values())


class SpreadStudy:
    """Suggests, decides and records for one study; every call that changes anything is told to `journal`.

    space, metric, mode, trials: as of the search. family: names the race of a configuration. warm: what it begins
    with. rules: built stopping rules. Raises `StudyError` when its searcher or a scheduler raises; the study is over
    then (`failure` says why), its other trials end as they are.
    """

    def __init__(
        self,
        run: str,
        study: Study,
        space: Any,
        metric: str,
        mode: str,
        trials: int,
        family: Callable[[Mapping[str, Any]], str],
        journal: Callable[[Event], None],
        warm: Sequence[WarmStart] = (),
        rules: Sequence[Any] = (),
    ) -> None:
        self.run, self.study, self.metric, self.mode, self.trials = run, study, metric, mode, trials
        self.family, self.journal, self.rules = family, journal, rules
        self.searcher = study.algorithm.build(
            space, metric=SCORE, mode=mode, seed=study.seed, trials=trials, **searcher_points(space, warm)
        )
        self.schedulers: dict[str, Any] = {}
        self.live: dict[int, SpreadTrial] = {}
        self.waiting: list[SpreadTrial] = []  # suggested before a crash, to be handed out again
        self.records: list[TrialRecord] = []
        self.remade: list[TrialRecord] = []  # of those, the ones that `replay` had to make again; to be written
        self.failure: str | None = None
        self.crashed: tuple[int, str | None] | None = None  # the trial that ended its workers, what Tune said of it
        self.ended = ""  # by which rule, before the budget was used up
        self._suggested = self._order = 0
        self._begun, self._before = time.monotonic(), 0.0  # seconds of earlier attempts
        self._exhausted = False
        self._view = SpreadView(self)

    @property
    def over(self) -> bool:
        """Nothing will be suggested any more."""
        spent = self._exhausted or self._suggested >= self.trials
        done = spent or self.failure is not None or self.crashed is not None or bool(self.ended)
        return done and not self.waiting

    @property
    def finished(self) -> bool:
        """Nothing will be suggested and nothing runs."""
        return self.over and not self.live

    def next(self) -> SpreadTrial | None:
        """The next trial to run, None when there is none now."""
        if self.waiting:
            trial = self.waiting.pop(0)
            trial.attempt += 1
            return trial
        self._ask_rules()
        if self.over:
            return None
        suggested = self._suggest()
        if suggested is not None:
            self._note(
                SUGGEST, suggested.number, {"config": dict(suggested.config), "seconds": suggested.suggest_seconds}
            )
        return suggested

    def result(self, number: int, report: Mapping[str, Any]) -> bool:
        """Take in a step of a trial; True when the trial is to stop. A step seen before is no news."""
        trial = self.live.get(number)
        if trial is None or trial.failure is not None:
            return True
        if report.get("unusable"):  # its data, for whatever configuration
            self.failure = str(report["failed"])
            raise StudyError(self.failure)
        if "failed" in report:
            trial.failure = (str(report["failed"]), report.get("error"))
            return False
        step = int(report["step"])
        if trial.steps and step <= trial.steps[-1].step:
            return trial.ended is not None
        keep = {name: value for name, value in report.items() if name in REPORTED}
        stop = self._decide(trial, keep)
        ruled = self._rule(trial)
        if not stop:
            trial.ended = ruled
            self._ask_rules()  # all trials may have been suggested, so that nobody asks any more
        self._note(RESULT, trial.number, {**keep, "stop": stop, "ruled": trial.ended and list(trial.ended)})
        return stop or trial.ended is not None

    def saved(self, number: int, path: str) -> None:
        """A trial has a checkpoint from which it can go on."""
        if number in self.live:
            self.live[number].checkpoint = path
            self._note(SAVE, number, {"path": path})

    def end(self, number: int, lost: str | None = None) -> TrialRecord | None:
        """A trial has ended, by itself, stopped, or (`lost`) with its last worker: its study has ended then, too."""
        trial = self.live.pop(number, None)
        if trial is None:
            return None
        if lost is not None and trial.failure is None:
            trial.failure = (lost, trial.death)
            if worker_died(trial.death or ""):
                self.crashed = (number, trial.death)
            else:
                trial.failure = (f"its worker could not work: {_last_line(trial.death)}", trial.death)
        record = self._close(trial)
        crashed = self.crashed and list(self.crashed)
        failure = trial.failure and list(trial.failure)
        self._note(END, trial.number, {"state": record.state, "failure": failure, "crashed": crashed})
        self.records.append(record)
        if self.crashed is not None:
            self.live.clear()
            self.waiting.clear()
        return record

    def replay(self, events: Sequence[Event], records: Mapping[int, TrialRecord]) -> None:
        """Do again what a journal says happened; trials without an end wait to be run again.

        records: of the ended trials, by number; with one that the journal does not know the study is over. One that is
        missing (its part was not written, or is damaged or deleted) is made again from the journal: running it again
        would come too late for what was suggested since.
        """
        for event in sorted(events, key=lambda event: event.order):
            if event.kind == SUGGEST:
                found = self._suggest()
                if found is None or not same_config(dict(found.config), dict(event.detail["config"])):
                    now = None if found is None else dict(found.config)
                    raise StudyError(
                        f"trial {event.trial} was suggested as {dict(event.detail['config'])}, now comes {now}: the "
                        "definition, the data or a library has changed since; run the study anew."
                    )
            elif event.kind == RESULT:
                trial = self.live[event.trial]
                stop = self._decide(trial, event.detail)
                self._rule(trial)  # what it says follows the clock: what was decided stands in the journal
                if not stop and event.detail.get("ruled"):
                    trial.ended = tuple(event.detail["ruled"])
            elif event.kind == OVER:
                self.ended = event.detail["reason"]
            elif event.kind == SAVE:
                self.live[event.trial].checkpoint = event.detail["path"]
            else:
                trial = self.live.pop(event.trial)
                record = records.get(event.trial)
                if record is not None:
                    trial.failure = (record.reason, record.error) if record.state == FAILED else None
                elif event.detail["state"] == FAILED:
                    trial.failure = tuple(event.detail.get("failure") or LOST)
                closed = self._close(trial)
                self.records.append(record or closed)
                if record is None:
                    self.remade.append(closed)
                if event.detail.get("crashed"):
                    self.crashed = tuple(event.detail["crashed"])
                    self.live.clear()
            self._order = event.order + 1
            self._before = float(event.detail.get("at", self._before))
        for rule in self.rules:
            rule.on_replay(self._before)
        known = {record.trial for record in self.records}
        beyond = [record for number, record in sorted(records.items()) if number not in known]
        if beyond:
            # The journal is written before the records: a part of it is gone. Its trials may not run again.
            self.records += beyond
            self.live.clear()
            self.ended = BROKEN
        self.waiting = list(self.live.values())

    def _suggest(self) -> SpreadTrial | None:
        number, before = self._suggested, time.perf_counter()
        try:
            config = self.searcher.suggest(f"{number:05d}")
        except Exception as error:
            self._blame("algorithm", error)
        if config is None:
            return None  # not now; asked again when a trial has ended
        if not isinstance(config, Mapping):
            self._exhausted = True
            return None
        trial = SpreadTrial(number, dict(config), self._order, suggest_seconds=time.perf_counter() - before)
        self._suggested += 1
        self.live[number] = trial
        return trial

    def _decide(self, trial: SpreadTrial, report: Mapping[str, Any]) -> bool:
        if trial.status == "PENDING":
            trial.status, trial.started = "RUNNING", time.time()
            trial.full, trial.prefix = int(report["full"]), bool(report["prefix"])
            trial.progress = bool(report.get("progress", trial.prefix))
            trial.race = int(report.get("race", trial.full))
            trial.scheduler = self._scheduler(trial)
        step, score = int(report["step"]), float(report["score"])
        trial.steps.append(StepRecord(step, score, float(report["seconds"]), dict(report.get("figures") or {})))
        trial.folds.append(tuple(report.get("folds") or ()))
        trial.fit_seconds, trial.worker = float(report["fit_seconds"]), str(report.get("worker", ""))
        trial.last = {STEP: step, SCORE: score, "trial_id": trial.trial_id, "config": trial.config}
        if not math.isfinite(score):
            trial.failure = (f"non_finite_metric: the score is {score} at step {step}", None)
            return True
        try:
            decision = trial.scheduler.on_trial_result(self._view, trial, trial.last)
            if decision != "STOP":
                self.searcher.on_trial_result(trial.trial_id, trial.last)
        except Exception as error:
            self._blame("scheduler or algorithm", error)
        if decision != "STOP" or trial.number == 0:  # the default configuration is never stopped
            return False
        if step < trial.full:  # else it has had its full budget
            reason = trial.scheduler.reason(trial.trial_id) or f"{self.study.scheduler.name}: stopped"
            trial.ended = (STOPPED, reason)
        return True

    def _rule(self, trial: SpreadTrial) -> tuple[str, str] | None:
        """State and reason when a stopping rule ends this trial now; never the default, nor one at its end."""
        if trial.number == 0 or trial.steps[-1].step >= trial.full or trial.failure is not None:
            return None
        for rule in self.rules:
            if rule.stop_all():
                return STOPPED, rule.study_reason()
            if rule(trial.trial_id, trial.last) and trial.progress:
                return FINISHED, rule.reason(trial.trial_id)
        return None

    def _ask_rules(self) -> None:
        """Whether a rule says that the study is over."""
        for rule in self.rules:
            if not self.ended and rule.stop_all():
                self.ended = rule.study_reason()
                self._note(OVER, NO_TRIAL, {"reason": self.ended})

    def _scheduler(self, trial: SpreadTrial) -> Any:
        family = self.family(trial.config)
        if family not in self.schedulers:
            self.schedulers[family] = self.study.scheduler.build(
                metric=SCORE,
                mode=self.mode,
                max_steps=trial.race,
                seed=derive(self.study.seed, "scheduler", family),
            )
        self.schedulers[family].on_trial_add(self._view, trial)
        return self.schedulers[family]

    def _close(self, trial: SpreadTrial) -> TrialRecord:
        position = self._position(trial)
        state, reason, error = FINISHED, "", None
        if trial.failure is not None:
            state, (reason, error) = FAILED, trial.failure
        elif position is None:
            state, reason = FAILED, "training ended without a single step"
        elif trial.ended is not None:
            state, reason = trial.ended
        trial.status = "ERROR" if state == FAILED else "TERMINATED"
        best = trial.steps[position] if position is not None else None
        try:
            if trial.scheduler is not None:
                if state == FAILED:
                    trial.scheduler.on_trial_error(self._view, trial)
                else:
                    trial.scheduler.on_trial_complete(self._view, trial, trial.last)
            if state == FAILED or best is None:
                self.searcher.on_trial_complete(trial.trial_id, error=True)
            else:
                told = {**trial.last, SCORE: best.score}
                if state == STOPPED:
                    told["stopped"] = True  # an algorithm may weigh a score of half a budget differently
                self.searcher.on_trial_complete(trial.trial_id, result=told)
        except Exception as raised:
            self._blame("scheduler or algorithm", raised)
        for rule in self.rules:
            rule.on_trial_end(trial.trial_id, state == FINISHED, best.score if best is not None else None)
        return TrialRecord(
            run=self.run,
            study=self.study.id,
            customer=self.study.customer.id,
            trial=trial.number,
            attempt=trial.attempt,
            suggested=trial.suggested,
            told=self._order,
            config=trial.config,
            family=self.family(trial.config),
            algorithm=self.study.algorithm.name,
            scheduler=self.study.scheduler.name,
            metric=self.metric,
            mode=self.mode,
            state=state,
            reason=reason,
            steps=trial.steps,
            best_step=best.step if best else None,
            score=best.score if best else None,
            fold_scores=trial.folds[position] if position is not None else (),
            metrics=best.metrics if best else {},
            study_seed=self.study.seed,
            seed=trial_seed(self.study.seed, trial.number),
            started=trial.started or time.time(),
            seconds=trial.steps[-1].seconds if trial.steps else 0.0,
            fit_seconds=trial.fit_seconds,
            suggest_seconds=trial.suggest_seconds,
            worker=trial.worker,
            versions=versions(),
            error=error,
        )

    def _position(self, trial: SpreadTrial) -> int | None:
        """Of the step that counts: the best where every prefix is a model, else the last."""
        if not trial.steps:
            return None
        finite = [index for index, step in enumerate(trial.steps) if math.isfinite(step.score)]
        if not trial.prefix or not finite:
            return len(trial.steps) - 1
        pick = max if self.mode == "max" else min
        return pick(finite, key=lambda index: trial.steps[index].score)

    def _note(self, kind: str, number: int, detail: Mapping[str, Any]) -> None:
        at = self._before + time.monotonic() - self._begun
        self.journal(Event(self.study.id, self._order, kind, number, {**detail, "at": at}))
        self._order += 1

    def _blame(self, part: str, error: Exception) -> Any:
        self.failure = f"the {part} failed: {type(error).__name__}: {error}"
        raise StudyError(self.failure) from error


# What of a worker's report is part of the truth.
REPORTED = frozenset(
    {"step", "score", "seconds", "folds", "figures", "full", "race", "prefix", "progress", "fit_seconds", "worker"}
)


def _last_line(text: str | None) -> str:
    return next((line.strip() for line in reversed((text or "").splitlines()) if line.strip()), "")[:500]
