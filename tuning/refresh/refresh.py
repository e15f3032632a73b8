"""A refresh: new rows are predicted, models are fitted on them, a search looks for better ones, and a release is made.

In this order: what champions and challengers lose on rows that came since is seen before anything learns from these.
Then it is decided who is promoted. Then what serves or stands is fitted again on all rows, and where it is due a search
looks for a better one. A new release is placed last. Each run lies in the champions' folder under the release's number
and is resumed where a refresh is repeated, so that one that was killed goes on.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

import pyarrow as pa

from tuning.champions.accepting import FOLDER as PROPOSALS
from tuning.champions.champion import HERE, NONE, OWN, Challenger, Champion, table_of
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
    REFRESH,
    ROWS,
    Release,
    TableFile,
)
from tuning.champions.releases import Releases
from tuning.data.prepared import OwnCode
from tuning.driver.runner import TuneRunner
from tuning.errors import RunError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.records.ownership import begun_term
from tuning.records.schema import OK
from tuning.refresh.new_losses import NewRowsReader
from tuning.refresh.plan import RefreshPlan
from tuning.refresh.verdicts import Verdicts, groups_table, looked_at
from tuning.runs.plan_file import read_names
from tuning.runs.results import RunResult

#: The kinds of runs of a refresh: what serves, what stands against it, and the search.
FITS, CHALLENGER_FITS, SEARCH = "fits", "challengers", "search"


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
        self.notes: dict[str, str] = {}
        self._definition = ""

    def run(self, progress: str = "none", in_process: bool = False) -> Refreshed:
        """Make the next release; none where all rows are as they were.

        Raises:
            RunOwnedError: somebody else refreshes these champions, or has made a release meanwhile.
        """
        plan = self.plan
        champions, challengers = dict(plan.champions), dict(plan.challengers)
        if plan.nothing_to_do:
            return Refreshed(plan.release, False, _answers(champions), challengers=len(challengers))
        verdicts = Verdicts(plan, self.releases, self._reader(), champions, challengers, self.notes)
        decided = verdicts.reach()
        drift = [each for each in verdicts.drift() if each.drifts]
        style = (progress, in_process)
        fitted = self._fitted(champions, FITS, style)
        champions |= {name: model.of_champion(champions[name]) for name, model in fitted.items()}
        against = self._fitted(challengers, CHALLENGER_FITS, style)
        challengers |= {name: model.of_challenger(challengers[name]) for name, model in against.items()}
        again = [each.customer for each in drift if each.customer in plan.change]
        names = list(dict.fromkeys([*verdicts.faulty, *again, *plan.searched]))
        self._search(champions, challengers, names, verdicts.faulty, style)
        release = self._placed(champions, challengers, decided.decisions, verdicts.groups)
        return Refreshed(
            release=release,
            new=True,
            answers=_answers(champions),
            fitted=len(fitted),
            challengers=len(challengers),
            decisions=decided.decisions,
            drift=drift,
            notes=self.notes,
            said_of_all=decided.said_of_all,
            proposal=self._proposed(release, decided.decisions),
        )

    def _reader(self) -> NewRowsReader:
        plan = self.plan
        return NewRowsReader(
            definition=plan.definition,
            metric=self._metric(),
            releases=self.releases,
            customers=looked_at(plan),
            before=plan.before,
            rows=plan.rows,
            least_gain=plan.options.least_gain,
            function=OwnCode(plan.definition).metric,
            allow_code=self.allow_code,
        )

    def _metric(self) -> str:
        for champion in self.plan.champions.values():
            if champion.study is not None and champion.run != HERE:
                directory = self.releases.run_directory(champion.run)
                return read_names(directory, begun_term(directory)).metric
        return self.plan.definition.metric or ""

    def _fitted(
        self, held: Mapping[str, Champion] | Mapping[str, Challenger], kind: str, style: tuple[str, bool]
    ) -> dict[str, FittedModel]:
        """The models of configurations, fitted on all rows that there are now; where that fails, a note."""
        fixed = {
            name: FixedConfiguration.from_json(each.configuration)
            for name in self.plan.fitted
            if (each := held.get(name)) is not None and each.configuration is not None
        }
        result = self._run(kind, fixed, style, fixed=fixed)
        found: dict[str, FittedModel] = {}
        for row in [] if result is None else result.best_studies().to_pylist():
            if row["status"] == OK and row["model_path"] is not None:
                found[row["customer"]] = FittedModel(
                    run=f"{RUNS}/{self.plan.number:06d}-{kind}",
                    study=row["study"],
                    model_path=row["model_path"],
                    model_sha256=row["model_sha256"],
                    rows=row["rows"],
                )
            else:
                self.notes[row["customer"]] = f"not fitted again, so the model of before stays: {row['reason']}"
        return found

    def _search(
        self,
        champions: dict[str, Champion],
        challengers: dict[str, Challenger],
        names: Sequence[str],
        faulty: Collection[str],
        style: tuple[str, bool],
    ) -> None:
        """Tune customers anew. Who had no model of its own, or one that cannot serve, gets the winner; others a
        challenger."""
        plan = self.plan
        result = self._run(SEARCH, names, style, warm_start=self._warm_start(champions, names))
        if result is None:
            return
        for winner in RunChampions(result, self.releases, plan.number, self.allow_code):
            name, now = winner.customer, champions.get(winner.customer)
            replaceable = now is not None and (now.answer != OWN or name in faulty) and winner.answer == OWN
            if now is None or now.answer == NONE or replaceable:
                champions[name] = winner
                continue
            rows = winner.rows or now.rows
            champions[name] = replace(now, searched=plan.number, rows_at_search=rows, drift=None)
            if winner.answer != OWN:
                self.notes[name] = f"its search found nothing better, so its champion stays: {winner.reason}"
            elif not same_members(now.configuration, winner.configuration) and self._may_stand(challengers.get(name)):
                challengers[name] = Challenger.of(winner, plan.number)

    def _may_stand(self, standing: Challenger | None) -> bool:
        return standing is None or self.plan.refreshes_since(standing.since) + 1 >= self.plan.options.stand

    def _warm_start(self, champions: Mapping[str, Champion], names: Sequence[str]) -> list[dict[str, object]]:
        """The champion's configuration and the two best of its search, which are tried first."""
        wanted = sorted(name for name in names if name in champions)  # a repeat must ask for the same
        entries: list[dict[str, object]] = []
        for name in wanted:
            text = champions[name].configuration if champions[name].answer == OWN else None
            members = [] if text is None else FixedConfiguration.from_json(text).members
            entries += [{"config": dict(each.config), "customer": name} for each in members if len(each.config) > 1]
        for run in sorted({self._search_of(champions[name]) for name in wanted}):
            with suppress(RunError):  # pruned, or moved away
                entries += [
                    each
                    for each in RunResult(self.releases.run_directory(run)).warm_start(best=2)
                    if each["customer"] in wanted
                ]
        return [each for place, each in enumerate(entries) if each not in entries[:place]]

    def _search_of(self, champion: Champion) -> str:
        """The run of a champion's last search, as releases name it."""
        number = champion.searched
        if number is None:
            return champion.run
        return f"{RUNS}/{number:06d}-{SEARCH}" if number in self.plan.refreshes else self.releases.at(number).run or "."

    def _run(self, kind: str, names: Iterable[str], style: tuple[str, bool], **given: object) -> RunResult | None:
        """A run of some customers, in the champions' folder; None without any."""
        wanted = sorted(names)
        if not wanted:
            return None
        directory = self.releases.directory.uri.rstrip("/") + f"/{RUNS}/{self.plan.number:06d}-{kind}"
        progress, in_process = style
        runner = TuneRunner(self.plan.definition, customers=tuple(wanted), **given)  # type: ignore[arg-type]  # keys of a definition
        result = runner.run(directory, progress=progress, in_process=in_process, resume=True)
        self._definition = hashlib.sha256(result.directory.read(result.term.definition)).hexdigest()
        return result

    def _proposed(self, release: Release, decisions: Sequence[Decision]) -> str:
        """The path of the proposal, which is written; empty where nobody is proposed."""
        proposal = Proposal.of(self.releases.name, release.number, decisions)
        if not proposal.decisions:
            return ""
        name = f"{PROPOSALS}/{release.number:06d}.json"
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
        tables = {CHAMPIONS: table_of(champions.values(), Champion), ROWS: plan.rows}
        if OTHERS in plan.release.tables:
            tables[OTHERS] = plan.release.tables[OTHERS]
        if challengers:
            tables[CHALLENGERS] = table_of(challengers.values(), Challenger)
        if groups:
            tables[GROUPS] = groups_table(groups)
        if decisions:
            tables[DECISIONS] = table_of(decisions, Decision)
        draft = Release(
            number=plan.number,
            parent=plan.release.number,
            why=REFRESH,
            definition=self._definition or plan.release.definition,
        )
        return self.releases.place(draft, tables)


def same_members(one: str | None, other: str | None) -> bool:
    """Whether two configurations are fitted alike, but for the seeds."""
    return one is not None and other is not None and _without_seeds(one) == _without_seeds(other)


def _without_seeds(text: str) -> list[dict[str, object]]:
    return [
        {name: value for name, value in each.items() if name not in ("seed", "weight")} for each in json.loads(text)
    ]


def _answers(champions: Mapping[str, Champion]) -> Counter[str]:
    return Counter(each.answer for each in champions.values())
