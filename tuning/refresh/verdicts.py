"""What new rows say: who is promoted, who is beaten, who drifts, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.basics.wording import amount, score_text, value_text
from tuning.champions.champion import Challenger, Champion
from tuning.champions.comparison import RowComparison
from tuning.champions.drift import DRIFTS, Drift, LossSoFar, drifting
from tuning.champions.evidence import Evidence
from tuning.champions.first_release import hold_out_error, hold_out_loss
from tuning.champions.promotion import HOLD_OUT, Contest, Decision, Decisions, decide
from tuning.champions.release import DECISIONS, GROUPS
from tuning.champions.releases import Releases
from tuning.champions.rules import promotion_rules
from tuning.champions.rules.rule import BEATEN, PROMOTED, STANDS
from tuning.champions.sizes import group_gains, size_of
from tuning.data.child_process import ChildProcess
from tuning.data.customers import Customer
from tuning.refresh.groups import UNKNOWN
from tuning.refresh.new_losses import ComparedModels, error_text, losses_in
from tuning.refresh.notes import add_note
from tuning.refresh.plan import RefreshPlan
from tuning.refresh.unseen_rows import NewRowsReader


@dataclass
class Verdicts:
    """Looks at new rows before anything learns from them.

    Attributes:
        child: where models predict; None for this process.
        champions, challengers: by customer; both are changed by `reach`.
        notes: by customer, why something was not done.
        faulty: customers whose champion cannot serve any more, and why.
        groups: the evidence by size of customers.
    """

    plan: RefreshPlan
    releases: Releases
    reader: NewRowsReader
    models: ComparedModels
    child: ChildProcess | None
    champions: dict[str, Champion]
    challengers: dict[str, Challenger]
    notes: dict[str, str]
    faulty: dict[str, str] = field(default_factory=dict)
    groups: dict[str, Evidence] = field(default_factory=dict)
    _weeks: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def reach(self) -> Decisions:
        """Look at all new rows, and let the rule decide."""
        self.groups = groups_of(self.releases.table(self.plan.release, GROUPS))
        for customer in self.reader.customers:
            self._look_at(customer)
        for size, weeks in self._weeks.items():
            gains = group_gains(*map(np.array, zip(*weeks, strict=True)))
            self.groups[size] = self.groups.get(size, Evidence.start(np.empty(0))).after(gains)
        contests = [self._contest(each) for each in self.challengers.values() if self._compared(each)]
        options = self.plan.options
        rule = promotion_rules()[options.promotion]
        decided = decide(contests, rule, self.groups, options.false_discoveries, self._ended())
        for decision in decided.decisions:
            name = decision.customer
            if decision.outcome == PROMOTED:
                challenger = self.challengers.pop(name)
                self.champions[name] = self.champions[name].replaced_by(challenger, decision.reason, self.plan.number)
            elif decision.outcome == BEATEN:
                del self.challengers[name]
        return decided

    def drift(self) -> list[Drift]:
        """The champions that drift, the surest first."""
        seen = [
            (name, LossSoFar.of_json(each.drift), each.hold_out_loss)
            for name, each in self.champions.items()
            if each.drift is not None and each.hold_out_loss is not None
        ]
        if not seen:
            return []
        names, so_far, promised = zip(*seen, strict=True)
        evidence, means = [each.evidence for each in so_far], [each.mean for each in so_far]
        found = drifting(names, evidence, means, promised, self.plan.options.false_discoveries)
        metric = self.models.metric
        return [replace(each, moved=self._moved(each.customer), metric=metric) for each in found if each.drifts]

    def _moved(self, name: str) -> str:
        customer = next((each for each in self.reader.customers if each.id == name), None)
        if customer is None:
            return ""
        with suppress(Exception):  # it was read before; this is one word more
            return self.reader.moved_column(customer)
        return ""

    def _look_at(self, customer: Customer) -> None:
        name = customer.id
        champion, challenger = self.champions[name], self.challengers.get(name)
        try:
            rows = self.reader.of(customer)
        except Exception as error:  # whatever is in a file
            add_note(self.notes, name, f"its new rows were not looked at: {error_text(error)}")
            return
        add_note(self.notes, name, rows.note)
        if not len(rows.frame):
            return  # copies of known rows alone
        found = losses_in(self.child, self.models, champion, challenger, rows)
        if found.unread:
            add_note(self.notes, name, f"its new rows tell nothing of its models: {found.unread}")
            return
        if found.fault:
            if found.note:
                self.challengers.pop(name, None)  # it cannot serve either
            self.faulty[name] = f"the champion cannot serve: {found.fault.removesuffix('.')}"
            add_note(self.notes, name, self.faulty[name])
            return
        if self.plan.change[name].is_other_data:
            return
        assert found.champion is not None
        if champion.hold_out_loss is not None:
            drift = LossSoFar.of_json(champion.drift).after(
                found.champion,
                champion.hold_out_loss,
                self.plan.options.drift_tolerance,
                champion.hold_out_error or 0.0,
            )
            self.champions[name] = replace(champion, drift=drift.to_json())
        if found.note:
            add_note(self.notes, name, f"its challenger was not compared: {found.note}")
        if challenger is not None and found.comparison is not None:
            self.challengers[name] = replace(challenger, comparison=found.comparison.to_json())
            self._note_week(champion, self.models.kept(challenger), found.comparison)

    def _note_week(self, champion: Champion, before: RowComparison | None, after: RowComparison) -> None:
        if before is None or not before.rows:
            return  # in which losses a gain counts is told by earlier rows
        size = str(size_of(np.array([champion.rows]))[0])
        saved = (after.champion - after.challenger) - (before.champion - before.challenger)
        week = float(saved) / (after.rows - before.rows), float(before.champion) / before.rows
        self._weeks.setdefault(size, []).append(week)

    def _compared(self, challenger: Challenger) -> bool:
        return challenger.customer in self.faulty or self.models.kept(challenger) is not None

    def _contest(self, challenger: Challenger) -> Contest:
        name = challenger.customer
        comparison = self.models.kept(challenger) or self.models.nothing_yet()
        return Contest(name, comparison, self.champions[name].rows, self.faulty.get(name))

    def _ended(self) -> list[float]:
        """Logarithms of the e-values with which challengers ended in the refreshes that the promise is for."""
        found: list[float] = []
        for number in sorted(self.plan.refreshes)[-self.plan.options.stand :]:
            table = self.releases.table(self.releases.at(number), DECISIONS)
            if table is not None:
                ended = table.filter(pc.is_in(table["outcome"], value_set=pa.array([PROMOTED, BEATEN])))
                found += [float(np.log(max(each, 1e-300))) for each in ended["e_value"].drop_null().to_pylist()]
        return found


def looked_at(plan: RefreshPlan) -> list[Customer]:
    """The customers with new rows, of which it is known which ones these are."""
    wanted = {name for name in plan.fitted if plan.change[name].group != UNKNOWN and plan.change[name].added}
    return [each for each in plan.customers if each.id in wanted]


def drift_text(drift: Drift) -> str:
    """Why a champion is tuned anew, as the rest of a sentence."""
    squared = drift.metric == "rmse"  # whose rows lose squared errors, which nobody reads
    name = drift.metric if squared else "a mean loss of"
    lost, promised = (value_text(each**0.5 if squared else each) for each in (drift.loss, drift.hold_out_loss))
    said = f"has {name} {lost} on {amount(drift.rows, 'new row')}, its hold-out promised {promised}"
    return "; ".join(filter(None, (said, drift.moved)))


def drift_decisions(drift: Iterable[Drift]) -> Iterator[Decision]:
    """Champions that drift, as they stand beside the decisions on challengers."""
    for each in drift:
        yield Decision(
            customer=each.customer,
            champion_loss=each.loss,
            challenger_loss=None,
            rows=each.rows,
            e_value=each.e_value,
            threshold=each.threshold,
            gain=None,
            shrunken_gain=None,
            rule="drift",
            outcome=DRIFTS,
            reason=drift_text(each),
        )


def promised_anew(champion: Champion, metric: str, scored: Json | None) -> Champion:
    """A champion that promises what its configuration has just scored on a hold-out, where it has.

    metric: as users read it.
    """
    if scored is None:
        return champion
    score, error = scored["test_score"], scored["test_error"]
    return replace(
        champion,
        hold_out_loss=hold_out_loss(metric, score),
        hold_out_error=hold_out_error(metric, score, error),
    )


def replaced_decision(champion: Champion, rule: str) -> Decision:
    """A champion that has taken the place of one that could not serve, as it stands beside the other decisions."""
    return Decision(champion.customer, None, None, 0, None, None, None, None, rule, PROMOTED, champion.reason)


def hold_out_decision(searched: Json, scored: Json, metric: str, rule: str) -> Decision:
    """A new challenger and its champion on the hold-out of the search, as they stand beside the other decisions.

    searched, scored: the studies of the search and of the champion's configuration, fitted on the same rows. Evidence
    gathers on new rows alone: a later search may choose by these.
    """
    champion, challenger = (hold_out_loss(metric, each["test_score"]) for each in (scored, searched))
    gain = None if champion is None or challenger is None or champion <= 0 else 1.0 - challenger / champion
    own, its = (score_text(each["test_score"], each["test_error"]) for each in (searched, scored))
    rows = amount(searched["test_rows"], "row")
    return Decision(
        customer=searched["customer"],
        champion_loss=champion,
        challenger_loss=challenger,
        rows=searched["test_rows"],
        e_value=None,
        threshold=None,
        gain=gain,
        shrunken_gain=None,
        rule=rule,
        outcome=STANDS,
        reason=f"new: {metric} {own} on the {rows} of the hold-out, the champion {its}; new rows decide",
        compared_on=HOLD_OUT,
    )


def groups_of(table: pa.Table | None) -> dict[str, Evidence]:
    """The evidence of a release, by size."""
    rows = [] if table is None else table.to_pylist()
    return {row["size"]: Evidence.of_dict(json.loads(row["evidence"])) for row in rows}


def groups_table(groups: Mapping[str, Evidence]) -> pa.Table:
    """The evidence by size as a table of a release."""
    texts = [json.dumps(each.to_dict()) for each in groups.values()]
    return pa.table({"size": pa.array(list(groups), pa.string()), "evidence": pa.array(texts, pa.string())})
