"""A refresh: new rows are predicted, models are fitted on them, a search looks for better ones, and a release is made.

In this order: what champions and challengers lose on rows that came since is seen before anything learns from these.
Then it is decided who is promoted. Then one run fits what serves or stands again on all rows, and where it is due
searches for a better one. A new release is placed last. The run lies in the champions' folder under the release's
number and what it was asked for, and is resumed where a refresh is repeated, so that one that was killed goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from tuning.basics.documents import Json
from tuning.champions.accepting import FOLDER as PROPOSALS
from tuning.champions.champion import HERE, NONE, OWN, Challenger, Champion, same_configuration, table_of
from tuning.champions.drift import Drift
from tuning.champions.evidence import Evidence
from tuning.champions.first_release import RunChampions
from tuning.champions.kept_runs import RUNS
from tuning.champions.promotion import Decision
from tuning.champions.proposal import Proposal
from tuning.champions.release import (
    CHALLENGERS,
    CHAMPIONS,
    DECISIONS,
    GROUPS,
    OTHERS,
    PAST,
    REFRESH,
    ROWS,
    Release,
    TableFile,
)
from tuning.champions.releases import Releases
from tuning.champions.rules.rule import PROMOTED
from tuning.data.child_process import ChildProcess
from tuning.data.prepared import OwnCode
from tuning.definition.given import definition_of
from tuning.driver.runner import TuneRunner
from tuning.errors import PlanError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.planning.studies import Known, asks_pool
from tuning.records.ownership import begun_term
from tuning.records.schema import OK
from tuning.refresh.groups import CHANGED, GROWN
from tuning.refresh.known_rows import hashes_of, past_rows
from tuning.refresh.new_losses import ComparedModels
from tuning.refresh.notes import add_note
from tuning.refresh.plan import RefreshPlan
from tuning.refresh.starts import first_tries
from tuning.refresh.unseen_rows import NewRowsReader
from tuning.refresh.verdicts import (
    Verdicts,
    drift_decisions,
    groups_table,
    hold_out_decision,
    looked_at,
    promised_anew,
    replaced_decision,
)
from tuning.runs.plan_file import plain, read_names
from tuning.runs.results import RunResult
from tuning.runs.resume import MAY_CHANGE
from tuning.storage.run_directory import RunDirectory

#: The names of a customer's studies in the run of a refresh: what serves, what stands against it, a search, and what
#: serves on the rows of that search, so that its hold-out compares both.
CHAMPION, CHALLENGER, SEARCH, SCORED = "champion", "challenger", "search", "scored"


@dataclass(frozen=True)
class Refreshed:
    """What came of a refresh.

    Attributes:
        release: that is in force afterwards. new: whether it was made for this.
        answers: customers by what answers them now.
        fitted: champions that have learned from new rows.
        challengers: how many stand now.
        decisions: on challengers that were compared on new rows.
        drift: champions that are worse on new rows than was promised; they are tuned anew, the surest first.
        notes: by customer, why something was not done.
        said_of_all: a sentence on the promoted together; empty without one.
        proposal: where it is written whom a rule proposes; empty where nobody is proposed.
    """

    release: Release
    new: bool
    answers: Mapping[str, int]
    fitted: int = 0
    challengers: int = 0
    decisions: Sequence[Decision] = ()
    drift: Sequence[Drift] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    said_of_all: str = ""
    proposal: str = ""

    @property
    def outcomes(self) -> Counter[str]:
        """Decisions by what they were."""
        return Counter(each.outcome for each in self.decisions)

    @property
    def with_model(self) -> int:
        """Customers who have an answer."""
        return sum(self.answers.values()) - self.answers.get(NONE, 0)

    def to_dict(self) -> dict[str, object]:
        """It as plain values."""
        return {
            "release": self.release.number,
            "new": self.new,
            "answers": dict(self.answers),
            "fitted": self.fitted,
            "challengers": self.challengers,
            "decisions": dict(self.outcomes),
            "promoted": [each.customer for each in self.decisions if each.outcome == PROMOTED],
            "drift": [each.customer for each in self.drift],
            "notes": dict(self.notes),
            "proposal": self.proposal,
        }


@dataclass(frozen=True)
class FittedModel:
    """A model that has learned from all rows that there are; its fields as of `Champion`."""

    run: str
    study: str
    model_path: str
    model_sha256: str
    rows: int

    def of_champion(self, champion: Champion) -> Champion:
        """A champion with this model."""
        return replace(champion, **asdict(self))

    def of_challenger(self, challenger: Challenger) -> Challenger:
        """A challenger with this model."""
        values = asdict(self)
        del values["rows"]
        return replace(challenger, **values)


class Refresh:
    """Does what a plan says."""

    def __init__(self, plan: RefreshPlan, releases: Releases, *, allow_code: bool = False) -> None:
        self.plan = plan
        self.releases = releases
        self.allow_code = allow_code
        self.notes = dict(plan.notes)
        self._run: RunDirectory | None = None

    def run(self, progress: str = "none", in_process: bool = False) -> Refreshed:
        """Make the next release; none where all rows are as they were.

        Raises:
            RunOwnedError: somebody else refreshes these champions, or has made a release meanwhile.
        """
        plan = self.plan
        champions, challengers = dict(plan.champions), dict(plan.challengers)
        if plan.nothing_to_do:
            return Refreshed(plan.release, False, _answers(champions), challengers=len(challengers), notes=self.notes)
        for name in plan.retired:
            champions.pop(name)
            challengers.pop(name, None)
        with ChildProcess() as child:
            given = self._reader(), self._models(), None if in_process else child
            verdicts = Verdicts(plan, self.releases, *given, champions, challengers, self.notes)
            decided = verdicts.reach()
        drift = verdicts.drift()
        again = [each.customer for each in drift if each.customer in plan.change]
        self._run = self._ran(champions, challengers, {*verdicts.faulty, *again, *plan.searched}, progress, in_process)
        fitted, against = self._fitted(CHAMPION, verdicts.faulty), self._fitted(CHALLENGER)
        champions |= {name: model.of_champion(champions[name]) for name, model in fitted.items()}
        challengers |= {name: model.of_challenger(challengers[name]) for name, model in against.items()}
        found = self._judge_search(champions, challengers, verdicts.faulty, again)
        proposal = self._proposed(decided.decisions)  # before the release, so that none lacks it
        known = {each.customer for each in decided.decisions}
        taken = [each for each in champions.values() if each.since == plan.number and each.customer in verdicts.faulty]
        replaced = [replaced_decision(each, plan.options.promotion) for each in taken if each.customer not in known]
        judged = (*decided.decisions, *replaced)
        decisions = [*judged, *drift_decisions(drift), *self._on_the_hold_out(found)]
        release = self._placed(champions, challengers, decisions, verdicts.groups)
        return Refreshed(
            release=release,
            new=True,
            answers=_answers(champions),
            fitted=len(fitted),
            challengers=len(challengers),
            decisions=judged,
            drift=drift,
            notes=self.notes,
            said_of_all=decided.said_of_all,
            proposal=proposal,
        )

    def _reader(self) -> NewRowsReader:
        plan = self.plan
        past = self.releases.table(plan.release, PAST)
        return NewRowsReader(plan.definition, looked_at(plan), plan.before, past, plan.rows)

    def _models(self) -> ComparedModels:
        definition = self.plan.definition
        return ComparedModels(
            name=self.releases.name,
            storage=self.releases.storage,
            target=definition.target or "",
            metric=self._metric(),
            least_gain=self.plan.options.least_gain,
            function=OwnCode(definition).metric,
            allow_code=self.allow_code,
        )

    def _metric(self) -> str:
        for champion in self.plan.champions.values():
            if champion.study is not None and champion.run != HERE:
                directory = self.releases.run_directory(champion.run)
                return read_names(directory, begun_term(directory)).metric
        return self.plan.definition.metric or ""

    def _ran(
        self,
        champions: Mapping[str, Champion],
        challengers: Mapping[str, Challenger],
        searched: Collection[str],
        progress: str,
        in_process: bool,
    ) -> RunDirectory | None:
        """The run of all fits and searches; None without any."""
        plan, studies = self.plan, dict[str, dict[str, Known]]()
        for kind, held in ((CHAMPION, champions), (CHALLENGER, challengers)):
            for name in plan.fitted:
                if name in held and (text := held[name].configuration) is not None:
                    studies.setdefault(name, {})[kind] = FixedConfiguration.from_json(text)
        first = first_tries(self.releases, champions, searched)
        for name in searched:
            (of_customer := studies.setdefault(name, {}))[SEARCH] = first.get(name, ())
            champion = champions.get(name)
            if champion is not None and champion.answer == OWN and champion.configuration is not None:
                of_customer[SCORED] = replace(FixedConfiguration.from_json(champion.configuration), only_scored=True)
        if not studies:
            return None
        concerned = list(studies)
        if plan.definition.pool != "off" and any(
            asks_pool(known) for each in studies.values() for known in each.values()
        ):
            studies = {name: {} for name in plan.customers.texts("id").to_pylist()} | studies  # whose rows it takes
        own = {"report": False, "customers": tuple(sorted(studies))}  # its page would praise models that do not serve
        runner = TuneRunner(definition_of(plan.definition, own), fixed=studies)
        same = {key: value for key, value in plain(plan.definition).items() if key not in MAY_CHANGE}
        asked = json.dumps([same, studies], sort_keys=True, default=_plain)
        name = f"{plan.number:06d}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"
        try:
            directory = f"{self.releases.directory.uri.rstrip('/')}/{RUNS}/{name}"
            return runner.run(directory, progress=progress, in_process=in_process, resume=True).directory
        except PlanError as error:
            if len(concerned) == len(plan.customers):
                raise
            for each in concerned:  # what no other customer has is odd about their data and not about the definition
                add_note(self.notes, each, f"nothing was fitted or searched for: {error}")
            return None

    def _fitted(self, kind: str, faulty: Collection[str] = ()) -> dict[str, FittedModel]:
        """The models of configurations, fitted on all rows; where that fails, a note, but where another replaces it."""
        found: dict[str, FittedModel] = {}
        if self._run is None:
            return found
        for row in RunResult(self._run, kind).best_studies().to_pylist():
            if row["status"] == OK and row["model_path"] is not None:
                found[row["customer"]] = FittedModel(
                    run=self.releases.reference(self._run),
                    study=row["study"],
                    model_path=row["model_path"],
                    model_sha256=row["model_sha256"],
                    rows=row["rows"],
                )
            elif row["customer"] not in faulty:
                add_note(
                    self.notes, row["customer"], f"not fitted again, so the model of before stays: {row['reason']}"
                )
        return found

    def _judge_search(
        self,
        champions: dict[str, Champion],
        challengers: dict[str, Challenger],
        faulty: Mapping[str, str],
        drifting: Collection[str],
    ) -> list[str]:
        """What the search has found. Who had no model of its own, or one that cannot serve, gets the winner; others a
        challenger, in place of one that was found before they drifted. These customers come back."""
        plan, found = self.plan, list[str]()
        if self._run is None:
            return found
        search = RunResult(self._run, SEARCH)
        metric = search.board().metric
        for winner in RunChampions(search, self.releases, plan.number, self.allow_code):
            name, now = winner.customer, champions.get(winner.customer)
            replaceable = now is not None and (now.answer != OWN or name in faulty) and winner.answer == OWN
            if now is None or now.answer == NONE or replaceable:
                why = f"{faulty[name]}; the winner of a search took its place" if name in faulty else winner.reason
                champions[name] = replace(winner, reason=why)
                challengers.pop(name, None)  # its evidence is against another one
                continue
            rows = winner.rows or now.rows
            now = replace(now, searched=plan.number, rows_at_search=rows, drift=None)
            champions[name] = now = promised_anew(now, metric, self._scored.get(name))
            if winner.answer != OWN:
                add_note(self.notes, name, f"its search found nothing better, so its champion stays: {winner.reason}")
            elif not same_configuration(now, winner) and self._may_stand(winner, challengers.get(name), drifting):
                challengers[name] = Challenger.of(winner, plan.number)
                found.append(name)
        return found

    def _on_the_hold_out(self, customers: Collection[str]) -> Iterator[Decision]:
        """What the hold-out of a search says of the challenger that it has found, and of the champion."""
        if self._run is None or not customers:
            return
        search = RunResult(self._run, SEARCH)
        metric, rule = search.board().metric, self.plan.options.promotion
        searched = {row["customer"]: row for row in search.best_studies().to_pylist()}
        for name in customers:
            if name in self._scored:
                yield hold_out_decision(searched[name], self._scored[name], metric, rule)

    @cached_property
    def _scored(self) -> dict[str, Json]:
        """What champions score on the hold-out of today's search, fitted on the rest."""
        if self._run is None:
            return {}
        rows = RunResult(self._run, SCORED).best_studies().to_pylist()
        return {row["customer"]: row for row in rows if row["test_score"] is not None}

    def _may_stand(self, winner: Champion, standing: Challenger | None, drifting: Collection[str]) -> bool:
        if standing is None:
            return True
        name = winner.customer
        return (name in drifting or self.plan.may_stand(name)) and not same_configuration(standing, winner)

    def _proposed(self, decisions: Sequence[Decision]) -> str:
        """The path of the proposal, which is written; empty where nobody is proposed."""
        proposal = Proposal.of(self.releases.name, self.plan.number, decisions)
        if not proposal.decisions:
            return ""
        name = f"{PROPOSALS}/{self.plan.number:06d}.json"
        self.releases.directory.write(name, proposal.to_json().encode())
        return self.releases.directory.display(name)

    def _placed(
        self,
        champions: Mapping[str, Champion],
        challengers: Mapping[str, Challenger],
        decisions: Sequence[Decision],
        groups: Mapping[str, Evidence],
    ) -> Release:
        plan = self.plan
        tables: dict[str, pa.Table | TableFile]
        tables = {CHAMPIONS: table_of(champions.values(), Champion), ROWS: plan.remembered}
        past = self._past()
        if len(past) or PAST in plan.release.tables:
            tables[PAST] = past
        if OTHERS in plan.release.tables:
            tables[OTHERS] = plan.release.tables[OTHERS]
        if challengers:
            tables[CHALLENGERS] = table_of(challengers.values(), Challenger)
        if groups:
            tables[GROUPS] = groups_table(groups)
        if decisions:
            tables[DECISIONS] = table_of(decisions, Decision)
        digest, run = plan.release.definition, None
        if self._run is not None:
            digest = hashlib.sha256(self._run.read(begun_term(self._run).definition)).hexdigest()
            run = self.releases.reference(self._run)
        draft = Release(plan.number, plan.release.number, REFRESH, definition=digest, run=run)
        return self.releases.place(draft, tables)

    def _past(self) -> pa.Table:
        """The rows that were known once and are not there any more."""
        plan = self.plan
        names = [each.customer for each in plan.changes.of(CHANGED, GROWN)]
        before, now = (hashes_of(table, names) for table in (plan.before, plan.rows))
        return past_rows(self.releases.table(plan.release, PAST), before, now)


def _answers(champions: Mapping[str, Champion]) -> Counter[str]:
    return Counter(each.answer for each in champions.values())


def _plain(value: object) -> object:
    return value.to_json() if isinstance(value, FixedConfiguration) else str(value)
