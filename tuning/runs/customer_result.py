"""One customer of a run: what won there, every trial, and what there is to know beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

from schedulers.direction import worth_of
from tuning.basics.public import Public
from tuning.basics.wording import amount, gain_text, params_text, score_text, setting_text
from tuning.errors import NoModelError
from tuning.notes import EndCode, Note
from tuning.records.figures import TRIAL_FIGURES, shown_in
from tuning.records.gains import is_error
from tuning.records.ownership import begun_term
from tuning.records.schema import FAILED, POOLED, STOPPED, Config, StudyRecord, TrialRecord, as_row, canonical
from tuning.reporting.cells import listed, paragraph, table
from tuning.runs.leaderboard import model_name, parameters
from tuning.runs.plan_file import RecordedPlan, read_plan
from tuning.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import pandas as pd
    from optuna import Study

    from tuning.runs.explanation import Winner
    from tuning.runs.optuna_study import Storage

OBJECTIVE = "objective"  # the task of a study that tunes a function
SHOWN_TRIALS = 10  # in a notebook
BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 20  # of a trial's steps


@dataclass(frozen=True, repr=False)
class CustomerResult(Public):
    """What came of one customer; `RunResult.customer` makes it.

    Attributes:
        directory: of the run.
        customer: its id.
        study: the record of the study that stands for it, the best one of several; None before one has ended.
        trial_records: all of its trials, of all of its studies.
        params: the winning configuration, as of `RunResult.best_config`; None without a winner.
        reason: why there is none; else None.
        verdict: of `ToUse`, what to use; None without a model or hold-out rows.
    """

    public = (
        *("customer", "study", "params", "reason", "winner", "notes", "trials", "trial_records", "curves", "hold_out"),
        *("schedule", "importance", "partial_dependence", "parameter_effects", "to_optuna", "directory"),
    )
    elsewhere = MappingProxyType(
        {
            **dict.fromkeys(("best_params", "best_config"), "params"),
            **dict.fromkeys(("best_score", "test_score", "gain"), "in study, such as study.test_score"),
            **dict.fromkeys(("model", "best_model", "predict"), "the result's model('acme'), which predicts"),
            "best_trial": "winner",
            "plot": "in tuning.runs.plots, such as plots.learning_curves(result.customer('acme'))",
        }
    )

    directory: RunDirectory
    customer: str
    study: StudyRecord | None
    trial_records: tuple[TrialRecord, ...]
    params: Config | None
    reason: Note | None
    verdict: str | None = None

    @property
    def _plan(self) -> RecordedPlan:
        return read_plan(self.directory, begun_term(self.directory))

    @property
    def _of_objective(self) -> bool:
        return self.study is not None and self.study.task == OBJECTIVE

    @property
    def winner(self) -> TrialRecord | None:
        """The trial that won; None without one, or where a constant is the model."""
        study = self.study
        if study is None or study.trial is None:
            return None
        return next((each for each in self.trial_records if each.key == (study.study, study.trial)), None)

    @property
    def notes(self) -> list[Note]:
        """What was left out, is missing or is to be known of the model."""
        if self.study is None:
            return []
        return [*self.study.notes]

    def trials(self) -> pd.DataFrame:
        """Return one row per trial, with the configuration in columns named `config.…`."""
        return trials_frame(self.trial_records)

    def curves(self) -> pd.DataFrame:
        """Return one row per step of a trial: `study`, `trial`, `family`, `step` (from 1), `score`, `seconds` of the
        trial so far, and as `metrics.…` the further figures that an objective has reported with it."""
        import pandas as pd

        steps = [(each, step) for each in self.trial_records for step in each.steps]
        rows = [(each.study, each.trial, each.family, step.step, step.score, step.seconds) for each, step in steps]
        found = pd.DataFrame(rows, columns=["study", "trial", "family", "step", "score", "seconds"])
        return found.join(pd.DataFrame([step.metrics for _, step in steps], index=found.index).add_prefix("metrics."))

    def schedule(self) -> list[tuple[int, Config]]:
        """Return (first step, configuration) of each stage of the winner's training; the last is `params`.

        There is one stage but under population-based training, where a trial goes on from another one's model with
        other values: training with the last ones alone makes another model. Without a winner there is none.
        """
        from tuning.runs.configurations import nested_config

        if self.params is None or self.study is None:
            return []
        *before, (first, _) = (self.winner and self.winner.stages) or [(1, self.params)]
        if before and self._of_objective:
            term, study = begun_term(self.directory), self.study.study
            before = [(step, nested_config(self.directory, term, study, config)) for step, config in before]
        return [*before, (first, self.params)]

    def parameter_effects(self) -> dict[str, float]:
        """Return how much each hyperparameter decides the score, the largest first."""
        import pandas as pd

        from tuning.runs.optuna_study import MOST_TRIALS, NEEDED, parameter_effects

        rows = [{**as_row(each), "config": canonical(each.config)} for each in self.trial_records[:MOST_TRIALS]]
        return parameter_effects(pd.DataFrame(rows, columns=[*NEEDED]), rows[0]["mode"] if rows else "min")

    def to_optuna(self, storage: Storage = None) -> Study:
        """Return the study as one of Optuna's, whatever algorithm searched, for Optuna's own plots and dashboard.

        storage: as of `optuna.create_study`, such as "sqlite:///optuna.db" for optuna-dashboard; None is in memory.
        """
        from tuning.runs.optuna_study import optuna_study

        plan = self._plan
        studies = (each for each in chain(plan.studies, plan.ended) if each.customer.id == self.customer)
        study = next(each for each in studies if self.study is None or each.id == self.study.study)
        trials = [record for record in self.trial_records if record.study == study.id]
        return optuna_study(trials, study.space, plan.spec.mode, storage)

    def hold_out(self, *, allow_code: bool = False) -> pd.DataFrame:
        """Return what the winner says of the hold-out rows: a row each, with `actual`, `prediction` and, of classes,
        `probability_…`. The index is the row's place among the customer's rows (after `prepare`), from 0.

        The rows are read again, and the winner is fitted again on the others. allow_code: as of `RunResult.model`.
        Errors: as of `Winners.of`.
        """
        return self.explained(allow_code).hold_out()

    def importance(self, *, allow_code: bool = False) -> pd.DataFrame:
        """Return which columns the winner's hold-out score hangs on: a row per column, the most important first.

        Columns `column`, `importance` in the metric's unit, `std`, `matters`. The winner is fitted again for it.
        allow_code, errors: as of `hold_out`.
        """
        return self.explained(allow_code).importance()

    def partial_dependence(self, column: str, *, allow_code: bool = False) -> pd.DataFrame:
        """Return how the mean prediction changes with one column: rows of `value` and `prediction`.

        allow_code, errors: as of `hold_out`.
        """
        return self.explained(allow_code).partial_dependence(column)

    @cached_property
    def _explained(self) -> dict[bool, Winner]:
        return {}

    def explained(self, allow_code: bool = False) -> Winner:
        """Return the winner, fitted again without the hold-out rows, with these."""
        from tuning.runs.explanation import Winners

        if self.study is None:
            raise NoModelError(EndCode.CUSTOMER_LACKS(self.customer, what="model to explain", why=self.reason))
        if allow_code not in self._explained:
            winners = Winners(self.directory, self._plan, [self.customer], allow_code)
            self._explained[allow_code] = winners.of(self.study, self.trial_records)
        return self._explained[allow_code]

    def __repr__(self) -> str:
        return f"CustomerResult({self.customer!r}: {self._sentence})"

    def __str__(self) -> str:
        return f"customer {self.customer!r}: {self._sentence}"

    @property
    def _sentence(self) -> str:
        trials, study = amount(len(self.trial_records), "trial"), self.study
        if study is None or self.params is None:
            pooled = study is not None and study.status == POOLED
            answers = "the run's pool answers, as there is no own model: " if pooled else ""
            return f"{answers}{str(self.reason).rstrip('.')}; {trials}"
        if not study.trials:
            return f"{model_name(study.family, study.ensemble)}, whose configuration was known; {trials}"
        row = as_row(study)
        folds, best = "" if self._of_objective else " on the folds", score_text(row["cv_score"], study.cv_error)
        if study.ensemble_score is not None:
            best = f"{score_text(row['ensemble_score'])} (its best trial {best})"
        score = f"{row['metric']} {best}{folds}"
        won = score if self._of_objective else f"{model_name(study.family, study.ensemble)}, {score}"
        gain = gain_text(row["gain"], is_error(study.metric), "+")
        return f"{won}{f', gain {gain}' if gain else ''}; {trials}"

    def _repr_html_(self) -> str:
        study = self.study
        facts = [paragraph(repr(self)), table(("", ""), self.facts())]
        facts += [
            table(*self.best_trials(SHOWN_TRIALS)),
            paragraph(self._of_trials),
            listed("Notes", [*map(str, self.notes)]),
        ]
        found = f"result.customer({self.customer!r})"
        steps = [f"{found}.trials()", f"{found}.curves()"] if self.trial_records else []
        if study is not None and study.model_path is not None:
            steps.append(f"{found}.importance()")
            steps.append(f"result.model({self.customer!r}).predict(new_rows)")
        return "".join([*facts, listed("Next", steps)])

    @property
    def _of_trials(self) -> str:
        """What the table of the best trials leaves out, and how its bars are read."""
        count = len(self.trial_records)
        less = (
            f"The best {SHOWN_TRIALS} of {amount(count, 'trial')}; trials() has all. " if count > SHOWN_TRIALS else ""
        )
        return f"{less}Steps: a higher bar is a better score." if count else ""

    def facts(self) -> list[tuple[str, str]]:
        """Return name and value of the winner's scores and parameters; [] without a winner."""
        study = self.study
        if study is None or self.params is None:
            return []
        row = {**as_row(study), "verdict": self.verdict}
        if self._of_objective:
            row["baseline"] = None  # all of its trials are of one family, "objective"
        shown = [(each.name, each.text(row)) for each in shown_in("customer") if each.text(row)]
        if study.ensemble is not None:
            members = json.loads(study.ensemble)
            of = ("" if each["trial"] is None else f" (trial {each['trial']})" for each in members)
            parts = (
                f"{100 * each['weight']:.0f} % {each['family']}{trial}" for each, trial in zip(members, of, strict=True)
            )
            best = "the first of these" if study.trial is None else f"trial {study.trial}, the best of these"
            shown += [("ensemble", ", ".join(parts)), ("parameters of", best)]
        if self.winner is not None and (stages := self.winner.changing):
            texts = (f"from step {first} {params_text(config)}" for first, config in stages)
            shown += [("schedule", "; ".join(texts)), ("parameters of", "its last stage")]
        return shown + [(name, setting_text(value)) for name, value in self.params.items()]

    def best_trials(self, most: int | None = None) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        """Return the columns and the rows of a table of the best trials, the winner first, those that were stopped
        early after the finished ones: they have seen fewer rows or rounds. most: rows; None is all."""
        winner = self.winner

        def order(each: TrialRecord) -> tuple[bool, bool, bool, float, int]:
            none = each.score is None or each.state == FAILED
            return (each is not winner, none, each.state == STOPPED, each.loss, each.trial)

        figures = shown_in("customer", TRIAL_FIGURES)
        rows = []
        for each in sorted(self.trial_records, key=order)[:most]:
            row = {
                **as_row(each),
                "trial": f"{each.trial}{' (won)' if each is winner else ''}",
                "family": "" if self._of_objective else each.family,
                "state": each.state if each.state != STOPPED else f"{STOPPED} after {len(each.steps)}",
                "steps": sparkline([step.score for step in each.steps], falling=each.mode == "min"),
                "config": params_text(each.config if self._of_objective else parameters(each.config)),
            }
            rows.append([figure.text(row) for figure in figures])
        return [figure.name for figure in figures], rows


def trials_frame(records: Iterable[TrialRecord]) -> pd.DataFrame:
    """Return one row per trial, with the configuration in columns named `config.…` and the number of its steps."""
    import pandas as pd

    rows: list[dict[str, object]] = []
    configs: dict[str, dict[int, object]] = {}  # by parameter, then by row
    for number, record in enumerate(records):
        row = {**as_row(record), "steps": len(record.steps)}
        row["reason"] = str(row["reason"] or "")
        for name, value in row.pop("config").items():
            configs.setdefault(f"config.{name}", {})[number] = value
        rows.append(row)
    settings: dict[str, pd.Series] = {}
    for name, values in configs.items():  # in a column of floats 1 is 1.0, and None is no value
        kinds = {*map(type, values.values())}
        plain = kinds == {float} or (len(kinds) == 1 and len(values) == len(rows))
        settings[name] = pd.Series(values, dtype=None if plain else object)
    return pd.concat([pd.DataFrame(rows), pd.DataFrame(settings, index=range(len(rows)))], axis=1)


def sparkline(scores: list[float], *, falling: bool = False) -> str:
    """Return the course of a trial's scores in a word of bars, its last steps; a higher bar is better.

    falling: a smaller score is better.
    """
    mode, last = "min" if falling else "max", scores[-MOST_BARS:]
    values = [worth_of(score, mode) for score in last if score == score and abs(score) < 1e300]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(BARS[round((value - low) * scale)] for value in values)
