"""What came of a run, read from its records: leaderboard, trials, models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.basics.public import Public
from tuning.basics.wording import amount, did_you_mean, resume_advice, score_text, time_text
from tuning.definition.baselines import GivenBaseline
from tuning.definition.plain_values import IN_MEMORY
from tuning.errors import NoModelError, UnknownCustomerError
from tuning.notes import EndCode, Note, from_row
from tuning.records.lease import last_heartbeat
from tuning.records.ownership import begun_term
from tuning.records.parts import POOL, STUDIES, TRIALS, accepted, read_some_trials, read_table
from tuning.records.schema import OK, POOLED, RUNNING, UNFINISHED, Config, StudyRecord, TrialRecord
from tuning.records.tables import records_of
from tuning.reporting.cells import listed, paragraph
from tuning.runs.customer_result import CustomerResult, trials_frame
from tuning.runs.leaderboard import LEADERBOARD, NEEDED, Leaderboard, exact_config
from tuning.runs.outcome import answer
from tuning.runs.outcome_file import read_outcome
from tuning.runs.plan_file import PlannedNames, frozen_definition, read_names, read_plan, with_name
from tuning.runs.prediction.models import OWN, ModelAnswer, ModelReader
from tuning.runs.run_counts import COUNTED, RunCounts, models_text, run_counts
from tuning.runs.standings import SO_FAR, Standings, UnfinishedCustomers, id_of
from tuning.runs.verdicts import is_constant
from tuning.storage.run_directory import RunDirectory
from tuning.study.warm_start import best_entries

if TYPE_CHECKING:
    import pandas as pd

    from tuning.definition.definition import Definition
    from tuning.evaluation.fixed import FixedConfiguration
    from tuning.models.customer_model import CustomerModel
    from tuning.runs.prediction.rows import NewRows, PredictedRows

#: What other tools call the attributes of a result.
OTHER_NAMES = {
    **dict.fromkeys(("best_params", "best_params_", "get_best_config"), "best_config(), of many best_config('acme')"),
    **dict.fromkeys(("best_score", "best_score_", "best_value"), "leaderboard()['cv_score'], or ['test_score']"),
    **dict.fromkeys(("best_model", "best_estimator_"), "model(), of one customer of many model('acme')"),
    **dict.fromkeys(("best_trial", "get_best_result"), "customer().winner"),
    **dict.fromkeys(("trials_dataframe", "get_dataframe", "cv_results_"), "trials()"),
    "feature_importances_": "importance()",
    "predict_proba": "predict(rows), which has a column for each class, or model('acme').predict_proba(rows)",
    "plot": "in tuning.runs.plots, such as plots.gains(result)",
}
_NO_MODELS = {False: EndCode.NOT_SAVED(), True: EndCode.OBJECTIVE_TUNED()}
_NEEDED = list(dict.fromkeys((*NEEDED, *COUNTED, "failed", "fit_seconds", "model_sha256")))


class RunResult(Public):
    """One run's results. Always read from the records, so it is the same here, later and elsewhere.

    `len()` is the number of customers, `result["acme"]` is `result.customer("acme")`, and a loop goes over their ids.
    study_name: of the studies that count, where customers have several (`tuning.planning.studies`); by default all.
    damaged: parts that could not be read, with the reason; their trials are missing until a resume runs them again.
    """

    public = (
        *("leaderboard", "trials", "customer", "best_config", "model", "predict", "importance", "parameter_effects"),
        *("warm_start", "fixed_configurations", "best_studies", "trial_records", "study_records"),
        *("summary", "notes", "unfinished", "directory"),
    )
    elsewhere = OTHER_NAMES

    def __init__(self, directory: RunDirectory | str | Path, study_name: str = "") -> None:
        self._name = study_name
        self.directory = directory if isinstance(directory, RunDirectory) else RunDirectory(directory)
        self.term = begun_term(self.directory)
        self.damaged: dict[str, str] = {}
        self._models = ModelReader(self.directory)
        self._boards: dict[str, Leaderboard] = {}  # by sort, which is all that differs

    def __len__(self) -> int:
        return len(self._standings.customers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._standings.customers.to_pylist())

    def __contains__(self, customer: object) -> bool:
        return self._standings.row_of(id_of(customer)) is not None

    def __getitem__(self, customer: object) -> CustomerResult:
        return self.customer(customer)

    def __repr__(self) -> str:
        counts = self.summary()
        left = f"unfinished, {amount(self.unfinished, 'study')} left; " if self.unfinished else ""
        so_far = f"; {amount(counts['trials'], 'trial')} recorded" if self.unfinished else ""
        if len(best := self._so_far.best) == counts["customers"] == 1:
            so_far += f", best so far {score_text(*best.values())}"
        return f"RunResult({counts['run']!r}: {left}{self.outcome(counts)}{so_far})"

    def _repr_html_(self) -> str:
        given = repr(str(self.board().ends(1)[0]["customer"])) if len(self) > 1 else ""
        best = f"best_config({given})" if self._plan.of_objective else f"model({given}).predict(new_rows)"
        steps = [f"result.customer({given})", f"result.{best}", "result.leaderboard()"]
        if self.unfinished:
            by_runner = frozen_definition(self.directory, self.term).objective == IN_MEMORY
            steps = [resume_advice(self.directory.shown, by_runner=by_runner)]
        return f"{self.html_table(repr(self))}{listed('Next', steps)}"

    def html_table(self, title: str = "") -> str:
        """Return what to use, and what matters of the first customers, as a notebook shows it."""
        said = "".join(map(paragraph, answer(self, self.summary())))
        return f"{paragraph(title)}{said}{self.board().html(of_objective=self._plan.of_objective)}"

    @cached_property
    def _parts(self) -> list[str]:
        return accepted(self.directory, self.term)

    def _damaged(self, name: str, error: Exception) -> None:
        self.damaged[name] = str(error)

    @cached_property
    def study_records(self) -> list[StudyRecord]:
        """The records of finished studies; of a study that went on with more trials the latest."""
        return sorted(records_of(self.records_table(STUDIES), StudyRecord), key=attrgetter("key"))

    @cached_property
    def trial_records(self) -> list[TrialRecord]:
        """The records of all trials."""
        return sorted(records_of(self.records_table(TRIALS), TrialRecord), key=attrgetter("key"))

    @cached_property
    def _pool(self) -> list[TrialRecord]:
        return records_of(self.records_table(POOL), TrialRecord)

    def records_table(self, kind: str) -> pa.Table:
        """Return all records of a kind in columns, as they are in files. kind: as of `tuning.records.parts`."""
        parts = self._parts[::-1] if kind == STUDIES else self._parts
        return read_table(self.directory, parts, kind, None, self._damaged)

    @cached_property
    def _studies(self) -> pa.Table:
        """What is needed of the studies' records, in columns."""
        return with_name(read_table(self.directory, self._parts[::-1], STUDIES, _NEEDED, self._damaged), self._name)

    @cached_property
    def _standings(self) -> Standings:
        plan = self._plan
        planned = pa.chunked_array([*plan.ended["customer"].chunks, *plan.studies["customer"].chunks], pa.string())
        return Standings(self._studies, planned, plan.mode, plan.baseline)

    @cached_property
    def _so_far(self) -> UnfinishedCustomers:
        """The customers without an ended study."""
        standings, plan = self._standings, self._plan
        none = standings.customers.filter(pa.array(standings.unfinished))
        if not len(none):
            return UnfinishedCustomers(EndCode.NOT_FINISHED(), {})
        trials = read_table(self.directory, self._parts, TRIALS, SO_FAR, self._damaged)
        trials = trials.filter(pc.is_in(trials["customer"], value_set=none))
        status = RUNNING if self.goes_on else UNFINISHED
        return UnfinishedCustomers.of(self.pending, trials, plan.mode, status)

    @cached_property
    def _plan(self) -> PlannedNames:
        return read_names(self.directory, self.term, self._name)

    @cached_property
    def goes_on(self) -> bool:
        """Whether another process works on the run now."""
        owner = self.term.owner
        return not (owner.here or owner.is_dead or last_heartbeat(self.directory, self.term).released)

    @cached_property
    def pending(self) -> Note:
        """Why studies have no record yet."""
        if self.goes_on:
            return EndCode.NOT_FINISHED_YET()
        ended = read_outcome(self.directory)
        if ended is None or ended["state"] != "spent":
            return EndCode.NOT_FINISHED()
        budget = frozen_definition(self.directory, self.term).time_budget or 0.0
        return EndCode.TIME_BUDGET_SPENT(budget=time_text(budget))

    def trials(self, customer: object = None) -> pd.DataFrame:
        """Return one row per recorded trial, with the configuration in columns named `config.…`.

        customer: one, as of `customer`; by default all, and first the run's pool, whose study is "/pool".
        """
        if customer is not None:
            return trials_frame(self.customer(customer).trial_records)
        return trials_frame([*self._pool, *self.trial_records])

    def customer(self, customer: object = None) -> CustomerResult:
        """Return one customer: trials, learning curves, the winner with its parameters, notes.

        customer: its id, or the value of its key column, of several columns a tuple; may be left out where the run has
        a single one. `UnknownCustomerError` for somebody else.
        """
        customer, best = self._best(customer)
        studies, trials = self._records_of([customer])
        study = next((record for record in studies if record.study == best.get("study")), None)
        reason = study.reason if study is not None else self._so_far.why(customer)
        params = None if reason or study is None or study.config is None else self.best_config(customer)
        ordered, verdict = tuple(sorted(trials, key=attrgetter("key"))), self._standings.verdict(customer)
        return CustomerResult(self.directory, customer, study, ordered, params, reason, verdict)

    def _records_of(self, customers: Sequence[str]) -> tuple[list[StudyRecord], list[TrialRecord]]:
        """Return all records of some customers."""
        studies, trials = (
            read_table(self.directory, parts, kind, damaged=self._damaged, customers=customers)
            for parts, kind in ((self._parts[::-1], STUDIES), (self._parts, TRIALS))
        )
        return records_of(studies, StudyRecord), records_of(trials, TrialRecord)

    def importance(self, most: int = 50, *, allow_code: bool = False) -> pd.DataFrame:
        """Return which columns matter for how many customers: a row per column, the one that matters most often first.

        Columns `column`, `matters_for`, `customers`, `share`, as of `tuning.runs.explanation.across`. most: customers
        that are looked at, from all over; each one's winner is fitted again. allow_code: as of `model`.
        `attrs["left_out"]` of the table says of which customers that failed, and why.
        """
        from tuning.runs.explanation import across

        best = self._standings.best_studies(["study", "customer", "status", "trial", "trials"])
        few = best.filter(pc.and_(pc.equal(best["status"], OK), pc.invert(is_constant(best))))
        few = few[:: max(1, -(-len(few) // most))]
        plan = read_plan(self.directory, self.term)
        return across(
            self.directory,
            plan,
            few["study"].to_pylist(),
            *self._records_of(few["customer"].to_pylist()),
            allow_code=allow_code,
        )

    def warm_start(self, best: int = 1) -> list[dict[str, object]]:
        """Return the next run's `warm_start`: the `best` best configurations of every customer."""
        return best_entries(self.trial_records, best)

    def fixed_configurations(self) -> dict[str, FixedConfiguration]:
        """Return the next run's `fixed`: of each customer with a model what fits that again."""
        from tuning.runs.configurations import fixed_configurations

        return fixed_configurations(self.directory, self.term, self.best_studies())

    def leaderboard(self, sort: str = "customer") -> pd.DataFrame:
        """Return one row per customer; every customer of the plan is there exactly once.

        Of several studies of a customer the one with the best cross-validation score stands for it. `params` is the
        winner's configuration (`best_config`) as JSON.

        sort: a column. By "customer", those with a model come first, by id, 2 before 10. By others better values
        come first, texts in the order of the alphabet. `ValueError` names the columns.
        """
        return self.board(sort).frame()

    def board(self, sort: str = "customer") -> Leaderboard:
        """Return the leaderboard in columns; no row is made before it is asked for. sort: as of `leaderboard`."""
        if sort not in LEADERBOARD:
            hint = did_you_mean(sort, LEADERBOARD)
            raise ValueError(f"sort: {sort!r} is no column.{hint} There are {', '.join(LEADERBOARD)}.")
        if sort not in self._boards:
            plan = self._plan
            self._boards[sort] = Leaderboard(self._standings, plan.metric, plan.mode, self._so_far, sort)
        return self._boards[sort]

    @property
    def baseline(self) -> GivenBaseline:
        """What models are compared with, as the definition has it."""
        return self._plan.baseline

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the plan that the run began with said of guesses, of what has no effect, and the like."""
        return self._plan.notes

    def best_studies(self) -> pa.Table:
        """Return each customer's best study in columns, which is what `tuning.runs.plots` draws."""
        return self._standings.best_studies(_NEEDED)

    def parameter_effects(self) -> dict[str, float]:
        """Return how much each hyperparameter decides how well a trial does among its customer's, the largest first;
        from some trials where there are many."""
        from tuning.runs.optuna_study import MOST_TRIALS, NEEDED, parameter_effects

        return parameter_effects(self.some_trials(NEEDED, MOST_TRIALS).to_pandas(), self._plan.mode)

    def some_trials(self, columns: Sequence[str], most: int) -> pa.Table:
        """Return columns of recorded trials, `study` and `trial` among them; of about `most`, from parts at random."""
        return read_some_trials(self.directory, self._parts, columns, most, self._damaged)

    def summary(self) -> RunCounts:
        """Return the run in figures, as `tuning run --output json` prints it."""
        trials, seconds = (pc.sum(self._studies[name], min_count=0).as_py() for name in ("trials", "fit_seconds"))
        return run_counts(
            self._plan,
            self.directory.shown,
            self._standings,
            trials=trials + sum(self._so_far.trials.values()),
            wall_seconds=self.term.seconds + last_heartbeat(self.directory, self.term).seconds,
            fit_seconds=seconds,
            pool=self._pool,
        )

    def outcome(self, counts: RunCounts | None = None) -> str:
        """Return how many customers have a model, or how many studies of an objective a winner, in words.

        counts: `summary()`, where it is there already.
        """
        return models_text(counts or self.summary(), self._plan.of_objective)

    @cached_property
    def planned(self) -> dict[str, str]:
        """Customers by the id of every study of the plan."""
        both = pa.concat_tables([self._plan.ended, self._plan.studies])
        return dict(zip(both["study"].to_pylist(), both["customer"].to_pylist(), strict=True))

    @cached_property
    def unfinished_studies(self) -> pa.ChunkedArray:
        """Ids of the studies of the newest owner's plan that have no record of its time yet."""
        own = self._parts[len(self.term.accepts) :]  # as old as what is counted of a run that goes on
        ended = read_table(self.directory, own, STUDIES, ["study"], self._damaged)["study"]
        return self._plan.studies["study"].filter(pc.invert(pc.is_in(self._plan.studies["study"], value_set=ended)))

    @property
    def unfinished(self) -> int:
        """The number of these studies."""
        return len(self.unfinished_studies)

    def best_config(self, customer: object = None) -> Config:
        """Return the configuration that won, exactly: of a model that grows with its length (such as `n_estimators`),
        of an ensemble that of its best trial, of an objective as it was called with, of a `customer().schedule()` its
        end.

        customer: as of `customer`.
        """
        customer, best = self._best(customer)
        config = best and exact_config(best["config"] and json.loads(best["config"]), best["family"], best["best_step"])
        if not best or config is None:
            raise self._lacking("winner", customer, best)
        if not self._plan.of_objective:
            return config
        from tuning.runs.configurations import nested_config

        return nested_config(self.directory, self.term, best["study"], config)

    def model(self, customer: object = None, *, allow_code: bool = False, pool: bool = False) -> CustomerModel:
        """Return a customer's best model, checked against the recorded digest.

        customer: as of `customer`. allow_code: also one that runs code of others: a `prepare` that no run of this user
        has run here, or a model that was saved with cloudpickle. pool: the pool alone, without the customer's own
        members; `RunError` where it is no member.
        """
        try:
            customer, best = self._best(customer)
        except UnknownCustomerError:
            named = "" if customer is None else id_of(customer)
            if named and (unseen := self._models.of_unseen(named, self._studies, allow_code)) is not None:
                return unseen
            raise
        if not best or best["model_path"] is None:
            raise self._lacking("model", customer, best)
        model = self._models.saved(best["model_path"], best["model_sha256"], allow_code)
        return model.pool_alone() if pool else model

    def predict(
        self,
        rows: NewRows,
        customer: object = None,
        *,
        allow_code: bool = False,
        interval: float | None = None,
        pool: bool = False,
    ) -> pd.DataFrame:
        """Return the rows of a frame or a file with predictions, by default of each row's own customer's model.

        The rows stay as they are; those of a CSV are text. customer, allow_code, pool: see `model`. interval: see its
        `predict`. `attrs` of the answer has the remarks of `tuning.runs.prediction.answers.AnswerCounts`.
        """
        found = self.predicted(rows, customer, allow_code=allow_code, interval=interval, pool=pool)
        found.rows.attrs.update(found.remarks)
        return found.rows

    def predicted(
        self,
        rows: NewRows,
        customer: object = None,
        *,
        allow_code: bool = False,
        interval: float | None = None,
        pool: bool = False,
    ) -> PredictedRows:
        """Return the same with what is to be said of it; arguments as of `predict`."""
        from tuning.runs.prediction.rows import predict_by

        models = RunModels(self, allow_code, pool)
        return predict_by(models, rows, customer, several=len(self) > 1, interval=interval)

    def _lacking(self, what: str, customer: str, best: Json) -> NoModelError:
        """Return the error of a customer that lacks something. best: see `_best`."""
        none = _NO_MODELS[self._plan.of_objective] if best else self._so_far.why(customer)
        why = from_row(best["reason"]) if best.get("reason") else none
        return NoModelError(EndCode.CUSTOMER_LACKS(customer, what=what, why=why))

    def _best(self, customer: object) -> tuple[str, Json]:
        """Return a customer and the record of its best study, by column; an empty one where none has ended."""
        customer, row = self._standings.named(customer)
        return customer, self._studies.slice(row, 1).to_pylist()[0] if row >= 0 else {}


@dataclass(frozen=True, eq=False)
class RunModels:
    """The models of a run, as `CustomerModels`. allow_code, pool: as of `RunResult.model`."""

    result: RunResult
    allow_code: bool = False
    pool: bool = False

    def __reduce__(self) -> tuple[Callable[..., RunModels], tuple[object, ...]]:
        return _opened, (self.result.directory.root, self.allow_code, self.pool)

    @cached_property
    def definition(self) -> Definition:
        """As the run has it."""
        return frozen_definition(self.result.directory)

    @property
    def mark(self) -> tuple[str, str | int]:
        """The run's name."""
        return "run", self.result.directory.root.rpartition("/")[2]

    @property
    def version(self) -> str:
        """The run's name and its owner, since a resume may have found better models."""
        return f"{self.mark[1]}, term {self.result.term.number}"

    def knows(self, customer: str) -> bool:
        """Return whether the run has this customer, with a model or without."""
        return customer in self.result

    def of(self, customer: object) -> ModelAnswer:
        """Return a model as of `RunResult.model`."""
        model = self.result.model(customer, allow_code=self.allow_code, pool=self.pool)
        return ModelAnswer(model, POOLED if model.family == POOLED else OWN)


@lru_cache(maxsize=1)
def _opened(run: str, allow_code: bool, pool: bool) -> RunModels:
    """Return, in a child process, the same object again and again."""
    return RunModels(RunResult(run), allow_code, pool)
