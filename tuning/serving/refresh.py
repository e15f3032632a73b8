"""A refresh: models learn the rows that came, a search looks for better ones in turn, and a release is made.

One run fits the configurations that serve on all rows, and searches where that is due; there the configuration that
serves is scored on the hold-out of the search, too, so that both are compared. A new release is placed last. The run
lies in the champions' folder under the release's number and what it was asked for, and is resumed where a refresh is
repeated, so that one that was killed goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from tuning.data.loading import Loader
from tuning.definition.definition import Definition
from tuning.definition.given import definition_of
from tuning.errors import DataError, PlanError, RunError, reason_of
from tuning.models.model_files import describe_model, inputs, saved_files
from tuning.notes import Note, ServingCode, from_row
from tuning.planning.studies import Fixed
from tuning.records.gains import gain_over
from tuning.records.schema import OK
from tuning.runs.results import RunResult
from tuning.serving.champion import NONE, OWN, POOL, Champion, same_configuration, table_of
from tuning.serving.kept_runs import RUNS
from tuning.serving.plan import ALWAYS, CHAMPION, SCORED, SEARCH, RefreshPlan, refresh_studies, run_name
from tuning.serving.release import REFRESH, Release
from tuning.serving.releases import Releases
from tuning.serving.winners import RunWinners
from tuning.storage.run_directory import RunDirectory

FEWER = 2 / 3  # of the rows of before: with less, a customer is said to have lost some
#: What does the run of a refresh: of a definition, what is known of its studies, and a folder, in which it goes on.
Train: TypeAlias = Callable[[Definition, Fixed, str], RunDirectory]


@dataclass(frozen=True)
class Refreshed:
    """What came of a refresh.

    Attributes:
        release: that is in force afterwards. new: whether it was made for this.
        answers: customers by what answers them now.
        fitted: customers whose champion has learned their rows of now.
        searched: customers who were searched for.
        promoted: of those that had a model, whom the winner of a search serves now.
        notes: by customer, what is odd about its rows or its model.
    """

    release: Release
    new: bool
    answers: Mapping[str, int]
    fitted: Sequence[str] = ()
    searched: Sequence[str] = ()
    promoted: Sequence[str] = ()
    notes: Mapping[str, tuple[Note, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "release": self.release.number,
            "new": self.new,
            "answers": dict(self.answers),
            "fitted": len(self.fitted),
            "searched": len(self.searched),
            "promoted": list(self.promoted),
            "notes": {name: [note.to_dict() for note in notes] for name, notes in self.notes.items()},
        }


class Refresh:
    """Does what a plan says. train: does its run."""

    def __init__(self, plan: RefreshPlan, releases: Releases, train: Train, *, allow_code: bool = False) -> None:
        self.plan = plan
        self.releases = releases
        self.allow_code = allow_code
        self._train = train
        self._champions = dict(plan.champions)
        self._fitted: list[str] = []
        self._promoted: list[str] = []
        self._left_out: dict[str, tuple[Note, ...]] = {}  # new customers that nothing could be done for
        self._failed: dict[str, Note] = {}  # who could not be fitted again, and why
        concerned = {*plan.fitted, *plan.searched}
        there = plan.changes.customers
        wanted = np.array([name in concerned for name in there.texts("id").to_pylist()], dtype=bool)
        self._sources = {each.id: each for each in there.take(wanted)}

    def run(self) -> Refreshed:
        """Make the next release; none where all rows are as they were.

        Raises:
            RunOwnedError: somebody else refreshes these champions, or has made a release meanwhile.
        """
        plan = self.plan
        if plan.nothing_to_do:
            return Refreshed(plan.release, False, _answers(plan.champions))
        for name in plan.retired:
            self._champions.pop(name)
        run = self._ran()
        if run is not None:
            self._learn(run)
            self._compare(run)
            self._replace_broken(run)
        if self._champions == plan.champions:
            return Refreshed(plan.release, False, _answers(plan.champions), notes=self._left_out)
        reference = None if run is None else self.releases.reference(run)
        draft = Release(plan.number, plan.release.number, REFRESH, run=reference)
        release = self.releases.place(draft, table_of(self._champions.values()))
        there = {name: self._champions[name].notes for name in self._sources if name in self._champions}
        return Refreshed(
            release=release,
            new=True,
            answers=_answers(self._champions),
            fitted=self._fitted,
            searched=plan.searched,
            promoted=self._promoted,
            notes={name: notes for name, notes in there.items() if notes} | self._left_out,
        )

    def _ran(self) -> RunDirectory | None:
        """Return the run of all fits and searches; None without any."""
        plan, studies = self.plan, refresh_studies(self.plan)
        if not studies:
            return None
        # Without a page, which would praise models that do not serve.
        definition = definition_of(plan.definition, {"report": False, "customers": tuple(sorted(studies))})
        directory = f"{self.releases.directory.uri.rstrip('/')}/{RUNS}/{run_name(plan, studies)}"
        try:
            return self._train(definition, studies, directory)
        except (PlanError, DataError) as error:
            if len(self._sources) == len(plan.changes.customers):
                raise
            for name in self._sources:  # what no other customer has is odd about their data and not the definition
                if name in self._champions:
                    self._keep(name, reason_of(error))
                else:
                    self._left_out[name] = (ServingCode.NO_MODEL(why=reason_of(error)),)
            return None

    def _learn(self, run: RunDirectory) -> None:
        """Serve the models that have learned the rows of now; where a fit has failed, say why."""
        result = RunResult(run, CHAMPION)
        learned = RunWinners(result, self.releases, self.plan.number).learned
        rows = {row["customer"]: row for row in result.best_studies().to_pylist()}
        for name in self.plan.fitted:
            row, before = rows.get(name), self._champions[name]
            if row is None or row["status"] != OK or row["model_path"] is None:
                self._keep(name, result.pending if row is None else from_row(row["reason"]))
                continue
            after = replace(
                before,
                run=self.releases.reference(run),
                **{each: row[each] for each in ("study", "model_path", "model_sha256", "rows")},
                **learned[name],
            )
            self._champions[name] = replace(after, notes=tuple(self._odd(before, after)))
            self._fitted.append(name)

    def _keep(self, name: str, reason: Note) -> None:
        """Let the model of before serve on. Its rows of now are known, so that it is not tried again with these."""
        now, self._failed[name] = self._sources[name], reason
        self._champions[name] = replace(
            self._champions[name],
            stamp=now.stamp,
            digest=now.digest,
            size=now.size,
            notes=(ServingCode.NOT_FITTED(why=reason),),
        )

    def _odd(self, before: Champion, after: Champion) -> Iterator[Note]:
        """Yield what is odd about the rows of a customer, as far as both models tell it."""
        if after.rows < FEWER * before.rows:
            yield ServingCode.FEWER_ROWS(rows=after.rows, before=before.rows)
        if before.answer != OWN:
            return
        try:
            then, now = self._columns(before), self._columns(after)
        except RunError as error:
            yield ServingCode.DAMAGED(why=reason_of(error))
            return
        if gone := then.keys() - now.keys():
            yield ServingCode.COLUMNS_GONE(columns=sorted(gone))
        if new := now.keys() - then.keys():
            yield ServingCode.COLUMNS_NEW(columns=sorted(new))
        for name in sorted(then.keys() & now.keys()):
            if then[name] != now[name]:
                yield ServingCode.OTHER_TYPE(name, before=then[name], now=now[name])

    def _columns(self, champion: Champion) -> dict[str, str]:
        """Return the columns that a model looks at, and of which kind they are."""
        assert champion.model_path is not None
        directory = self.releases.run_directory(champion.run)
        description = describe_model(directory, champion.model_path, champion.model_sha256)
        return dict(description["columns"])

    def _compare(self, run: RunDirectory) -> None:
        """Let the rule decide between the winners of searches and the configurations that serve."""
        search = RunResult(run, SEARCH)
        scored = {row["customer"]: row["test_score"] for row in RunResult(run, SCORED).best_studies().to_pylist()}
        winners = RunWinners(search, self.releases, self.plan.number, self.allow_code)
        mode = search.board().mode
        for winner in winners.of([*search]):
            name, now = winner.customer, self._champions.get(winner.customer)
            if now is None:
                self._champions[name] = winner
                continue
            size = winners.learned[name]["size"] if name in winners.learned else now.size
            now = replace(now, searched=self.plan.number, searched_size=size)
            if now.answer == OWN and winner.answer == OWN:
                now = replace(now, score=scored.get(name), other_score=winner.score)
            self._champions[name] = self._decided(now, winner, winners.metric, mode)

    def _decided(self, now: Champion, winner: Champion, metric: str, mode: str) -> Champion:
        """Return who serves: the champion of now, or the winner of a search."""
        name = now.customer
        if now.answer != OWN and (winner.answer == OWN or now.answer in (NONE, POOL)):
            return winner if winner.answer != NONE else replace(now, notes=winner.reason)
        if winner.answer != OWN:
            return replace(now, notes=(*now.notes, ServingCode.NO_WINNER(), *winner.reason))
        if name in self._failed:
            return self._promote(winner, (ServingCode.REPLACED(why=self._failed[name]),), None)
        if same_configuration(now, winner):
            return replace(now, other_score=None)
        if self.plan.options.promotion == ALWAYS:
            return self._promote(winner, (ServingCode.NEWEST(),), now.score)
        gain = None if now.score is None or winner.score is None else gain_over(now.score, winner.score, metric, mode)
        if gain is None:
            return replace(now, notes=(*now.notes, ServingCode.NOT_COMPARED()))
        scores: dict[str, object] = {"metric": metric, "score": now.score, "other_score": winner.score}
        if gain > self.plan.options.min_gain:
            scores |= {"score": winner.score, "other_score": now.score}
            return self._promote(winner, (ServingCode.BETTER("", **scores),), now.score)
        return replace(now, notes=(*now.notes, ServingCode.STAYS("", **scores)))

    def _promote(self, winner: Champion, reason: tuple[Note, ...], other_score: float | None) -> Champion:
        self._promoted.append(winner.customer)
        return replace(winner, reason=(*reason, *winner.reason[1:]), other_score=other_score)

    def _replace_broken(self, run: RunDirectory) -> None:
        """Give another answer to those whose model of before stays and cannot serve."""
        broken = {}
        for name in self._failed.keys() - {*self._promoted}:
            if (fault := self._fault(self._champions[name])) is not None:
                broken[name] = fault
        winners = RunWinners(RunResult(run, CHAMPION), self.releases, self.plan.number, self.allow_code)
        for lesser in winners.of(sorted(broken)) if broken else ():
            name = lesser.customer
            reason = (ServingCode.CANNOT_SERVE(why=broken[name]), *lesser.reason)
            self._champions[name] = replace(lesser, reason=reason, notes=reason)

    def _fault(self, champion: Champion) -> Note | None:
        """Return why a model cannot serve: it is not what was written, or needs a column that is not there any more."""
        if champion.model_path is None:
            return None
        directory, needed = self.releases.run_directory(champion.run), list[str]()
        try:
            for file in saved_files(directory, champion.model_path, champion.model_sha256):
                if file.name == "model.json":
                    needed = [name for name, must in inputs(json.loads(file.content)).items() if must]
        except RunError as error:
            return reason_of(error)
        source = self._sources[champion.customer]
        with suppress(Exception):  # rows that nobody can read need no model
            columns = Loader(self.plan.definition, ()).read(replace(source, stamp="", digest="")).columns
            return next((ServingCode.NEEDS_COLUMN(name) for name in needed if name not in columns), None)
        return None


def _answers(champions: Mapping[str, Champion]) -> Counter[str]:
    return Counter(each.answer for each in champions.values())
