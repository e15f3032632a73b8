"""What came of a run, read from its records: leaderboard, trials, models."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tuning.errors import NoModelError, UnknownCustomerError
from tuning.evaluation.study_data import MODEL
from tuning.evaluation.winner import is_too_good
from tuning.models.customer_model import described_as
from tuning.models.registry import families
from tuning.records.lease import last_heartbeat
from tuning.records.ownership import begun_term
from tuning.records.parts import accepted, read_studies, read_trials
from tuning.records.schema import (
    FINISHED,
    NO_MODEL,
    OK,
    STUDY_STATUSES,
    Config,
    StudyRecord,
    TrialRecord,
    canonical,
)
from tuning.runs.plan_file import PlannedNames, frozen_definition, read_names, read_plan
from tuning.runs.transfer_gain import TransferGain, transfer_gain
from tuning.storage.run_directory import RunDirectory
from tuning.wording import did_you_mean, natural_order

if TYPE_CHECKING:
    import pandas as pd

    from tuning.models.customer_model import CustomerModel

LEADERBOARD = (
    "customer",
    "status",
    "reason",
    "model",
    "metric",
    "mode",
    "positive",
    "cv_score",
    "test_score",
    "baseline",
    "baseline_test_score",
    "gain",
    "constant_test_score",
    "gain_over_constant",
    "trials",
    "seconds",
    "params",
    "notes",
    "model_path",
)
#: One customer's row of the leaderboard, by column.
Row: TypeAlias = dict[str, object]
_NO_MODELS = {
    False: "models were not saved (save_models: false)",
    True: "an objective was tuned; result.best_config() is what won",
}
SHOWN = 20  # customers, in a notebook
PENDING = "not finished yet: resume the run"
USED_UP = "not finished: the time budget (limits.run_seconds: {limit:g}) is spent; resume with a larger one"


class RunResult:
    """One run's results. Always read from the records, so it is the same here, later and elsewhere.

    damaged: parts that could not be read, with the reason; their trials are missing until a resume runs them again.
    """

    def __init__(self, directory: RunDirectory | str | Path) -> None:
        self.directory = directory if isinstance(directory, RunDirectory) else RunDirectory(directory)
        self.term = begun_term(self.directory)
        self.damaged: dict[str, str] = {}

    def __repr__(self) -> str:
        counts = self.summary()
        studies = "1 study" if self.unfinished == 1 else f"{self.unfinished} studies"
        left = f"unfinished, {studies} left; " if self.unfinished else ""
        return f"RunResult({counts['run']!r}: {left}{self.outcome(counts)})"

    def _repr_html_(self) -> str:
        board = self.leaderboard()
        less = (
            f"<p>The first {SHOWN} of {len(board)} customers; leaderboard() has all.</p>" if len(board) > SHOWN else ""
        )
        return f"<p>{escape(repr(self))}</p>{board.head(SHOWN).to_html(index=False, na_rep='')}{less}"

    @cached_property
    def _parts(self) -> list[str]:
        return accepted(self.directory, self.term)

    def _damaged(self, name: str, error: Exception) -> None:
        self.damaged[name] = str(error)

    @cached_property
    def study_records(self) -> list[StudyRecord]:
        """The records of finished studies; of a study that went on with more trials the latest."""
        return read_studies(self.directory, self._parts[::-1], self._damaged)

    @cached_property
    def trial_records(self) -> list[TrialRecord]:
        """The records of all trials."""
        return read_trials(self.directory, self._parts, self._damaged)

    @cached_property
    def _of_unfinished(self) -> Counter[str]:
        """Recorded trials by customer; asked for only where a study has not come to its own record."""
        return Counter(record.customer for record in self.trial_records)

    @cached_property
    def _plan(self) -> PlannedNames:
        return read_names(self.directory, self.term)

    @cached_property
    def pending(self) -> str:
        """Why studies have no record yet."""
        limit = frozen_definition(self.directory, self.term).limits.run_seconds
        return PENDING if limit is None or self._wall < limit else USED_UP.format(limit=limit)

    def trials(self) -> pd.DataFrame:
        """One row per recorded trial, with the configuration in columns named `config.…`."""
        import pandas as pd

        rows = []
        for record in self.trial_records:
            row = asdict(record)
            row["steps"] = len(record.steps)
            config = row.pop("config")
            rows.append({**row, **{f"config.{name}": value for name, value in config.items()}})
        return pd.DataFrame(rows)

    def warm_start(self, best: int = 1) -> list[dict[str, Any]]:
        """The next run's `warm_start`: the `best` best configurations of every customer, to be tried first there."""
        by_customer: dict[str, list[TrialRecord]] = {}
        for record in self.trial_records:
            if record.score is not None and record.state == FINISHED:
                by_customer.setdefault(record.customer, []).append(record)
        entries = []
        for customer, records in sorted(by_customer.items()):
            sign = -1 if records[0].mode == "max" else 1
            records.sort(key=lambda record: (sign * (record.score or 0.0), record.trial))
            configs: list[Any] = []
            for record in records:
                if len(configs) < best and record.config not in configs:
                    configs.append(record.config)
            entries += [{"config": config, "customer": customer} for config in configs]
        return entries

    def leaderboard(self, sort: str = "customer") -> pd.DataFrame:
        """One row per customer; every customer of the plan is there exactly once.

        Of several studies of a customer the one with the best cross-validation score stands for it. `params` is the
        winner's configuration (`best_config`) as JSON.

        sort: "customer", those with a model first, by id, 2 before 10; "gain", the largest first; "seconds", the
        longest first.
        """
        import pandas as pd

        rows = [{**row, "params": _json(row["params"])} for row in self.rows(sort)]
        return pd.DataFrame(rows, columns=list(LEADERBOARD))

    def rows(self, sort: str = "customer") -> list[Row]:
        """The leaderboard as plain values, `params` as a mapping; `ValueError` for an unknown order."""
        if sort not in _ORDERS:
            raise ValueError(f"sort: {sort!r} is not one of {', '.join(_ORDERS)}.")
        found = sorted(self._by_customer.items(), key=lambda item: natural_order(item[0]))
        found.sort(key=lambda item: _ORDERS[sort](item[1]))
        return [self._row(customer, records) for customer, records in found]

    @cached_property
    def _by_customer(self) -> dict[str, list[StudyRecord]]:
        by_customer: dict[str, list[StudyRecord]] = {}
        for customer in sorted({*self.planned.values()}):
            by_customer[customer] = []
        for record in self.study_records:
            by_customer.setdefault(record.customer, []).append(record)
        return by_customer

    def _row(self, customer: str, records: list[StudyRecord]) -> Row:
        best = best_study(records)
        if best is None:
            return {
                **dict.fromkeys(LEADERBOARD),
                "customer": customer,
                "status": NO_MODEL,
                "reason": self.pending,
                "metric": self._plan.metric,
                "mode": self._plan.mode,
                "trials": self._of_unfinished[customer],
            }
        config = exact_config(best)
        return {
            "customer": customer,
            "status": best.status,
            "reason": best.reason,
            "model": _model_name(best),
            "metric": best.metric,
            "mode": best.mode,
            "positive": best.positive,
            "cv_score": best.cv_score,
            "test_score": best.test_score,
            "baseline": best.baseline,
            "baseline_test_score": best.baseline_test_score,
            "gain": best.gain,
            "constant_test_score": best.constant_test_score,
            "gain_over_constant": best.gain_over_constant,
            "trials": sum(record.trials for record in records),
            "seconds": round(sum(record.seconds for record in records), 3),
            "params": None if config is None else {name: config[name] for name in config if name != MODEL},
            "notes": best.notes,
            "model_path": best.model_path,
        }

    def summary(self) -> dict[str, Any]:
        """The run in figures, as `tuning run --output json` prints it."""
        by_customer = self._by_customer
        best = [best_study(records) for records in by_customer.values()]
        unfinished = [self._of_unfinished[name] for name, one in zip(by_customer, best, strict=True) if one is None]
        succeeded = sum(record is not None and record.status == OK for record in best)
        others = [record for record in best if record is not None and (record.trial != 0 or record.ensemble)]
        gains = [record.gain for record in others if record.gain is not None]
        return {
            "run": self._plan.run,
            "run_dir": self.directory.shown,
            "customers": len(by_customer),
            "succeeded": succeeded,
            "without_model": len(by_customer) - succeeded,
            # Of the winners other than the baseline, on rows that the search never saw.
            "compared_with_baseline": len(gains),
            "worse_than_baseline": sum(gain < 0 for gain in gains),
            "ensembles": sum(bool(record is not None and record.ensemble) for record in best),
            "model_bytes": sum(record.model_bytes or 0 for record in best if record is not None),
            "constants": sum(record is not None and record.status == OK and record.trial is None for record in best),
            **({} if self.transfer_gain is None else {"transfer": asdict(self.transfer_gain)}),
            "too_good": sum(record is not None and _is_too_good(record) for record in best),
            "with_notes": sum(bool(record is not None and record.notes) for record in best),
            "trials": sum(record.trials for record in self.study_records) + sum(unfinished),
            "wall_seconds": round(self._wall, 3),
            "fit_seconds": round(sum(record.fit_seconds for record in self.study_records), 3),
        }

    @cached_property
    def transfer_gain(self) -> TransferGain | None:
        """What `transfer` gained over a search without it; None where nobody was searched without."""
        return transfer_gain(self.study_records)

    def outcome(self, counts: Mapping[str, Any] | None = None) -> str:
        """The run in part of a sentence: how many customers have a model, or how many studies of an objective a winner.

        counts: `summary()`, where it is there already.
        """
        counts = counts or self.summary()
        what = "studies have a winner" if self._plan.of_objective else "customers have a model"
        return f"{counts['succeeded']} of {counts['customers']} {what}"

    @property
    def _wall(self) -> float:
        """Seconds that the owners of the run have worked."""
        return self.term.seconds + last_heartbeat(self.directory, self.term).seconds

    @cached_property
    def planned(self) -> dict[str, str]:
        """Customers by the id of every study of the plan."""
        return {**self._plan.ended, **self._plan.studies}

    @cached_property
    def unfinished_studies(self) -> set[str]:
        """Ids of the studies of the newest owner's plan that have no record of its time yet."""
        now = read_studies(self.directory, self.directory.list(self.term.records), self._damaged)
        return set(self._plan.studies) - {record.study for record in now}

    @property
    def unfinished(self) -> int:
        """How many of them there are."""
        return len(self.unfinished_studies)

    def best_config(self, customer: str | None = None) -> Config:
        """The configuration that won, exactly: of a model that grows with its length (such as `n_estimators`), of an
        objective as it was called with.

        customer: may be left out where the run has a single one.
        """
        customer, best = self._best(customer)
        config = None if best is None else exact_config(best)
        if best is None or config is None:
            raise NoModelError(f"customer {customer!r} has no winner: {best.reason if best else self.pending}")
        if not self._plan.of_objective:
            return config
        plan = read_plan(self.directory, self.term)
        return next(study.space.nest(config) for study in (*plan.studies, *plan.ended) if study.id == best.study)

    def model(self, customer: str | None = None, *, allow_pickle: bool = False) -> CustomerModel:
        """A customer's best model, checked against the recorded digest.

        customer: may be left out where the run has a single one. allow_pickle: also one that was saved with
        cloudpickle, which runs the code in it.
        """
        from tuning.models.customer_model import load_model

        customer, best = self._best(customer)
        if best is None or best.model_path is None:
            reason = self.pending if best is None else best.reason or _NO_MODELS[self._plan.of_objective]
            raise NoModelError(f"customer {customer!r} has no model: {reason}")
        return load_model(self.directory, best.model_path, best.model_sha256, allow_pickle=allow_pickle)

    def _best(self, customer: str | None) -> tuple[str, StudyRecord | None]:
        by_customer = self._by_customer
        if customer is None:
            if len(by_customer) != 1:
                raise UnknownCustomerError(f"which of the {len(by_customer)} customers? Give its id.")
            customer = next(iter(by_customer))
        if customer not in by_customer:
            raise UnknownCustomerError(f"no customer {customer!r} in this run.{did_you_mean(customer, by_customer)}")
        return customer, best_study(by_customer[customer])


def _model_name(record: StudyRecord) -> str | None:
    """The winner's family, or what the ensemble is made of."""
    if record.ensemble is None:
        return record.family
    return described_as([member["family"] for member in json.loads(record.ensemble)])


def _json(params: object) -> str | None:
    return canonical(params) if isinstance(params, dict) else None


def exact_config(record: StudyRecord) -> Config | None:
    """A winner's configuration, with the length that it was refitted to (such as `n_estimators`)."""
    if record.config is None or record.family is None or record.best_step is None:
        return record.config
    built_in = families().get(record.family)
    return record.config if built_in is None else built_in.at_step(record.config, record.best_step)


def _rank(records: list[StudyRecord]) -> float:
    best = best_study(records)
    return STUDY_STATUSES.index(NO_MODEL if best is None else best.status)


def _lost(records: list[StudyRecord]) -> float:
    best = best_study(records)
    return math.inf if best is None or best.gain is None else -best.gain


def _hurry(records: list[StudyRecord]) -> float:
    return -sum(record.seconds for record in records)


# The orders of the leaderboard: what comes first has the smallest value; of equal ones the smaller id.
_ORDERS: dict[str, Callable[[list[StudyRecord]], float]] = {"customer": _rank, "gain": _lost, "seconds": _hurry}


def _is_too_good(record: StudyRecord) -> bool:
    return record.task != "objective" and is_too_good(record.metric, record.cv_score, record.cv_error, record.rows)


def best_study(records: list[StudyRecord]) -> StudyRecord | None:
    """Of a customer's studies the one with the best cross-validation score; without any, the first."""
    scored = [record for record in records if record.status == OK and record.cv_score is not None]
    if not scored:
        return records[0] if records else None
    sign = 1.0 if scored[0].mode == "max" else -1.0
    return max(scored, key=lambda record: sign * (record.cv_score or 0.0))
