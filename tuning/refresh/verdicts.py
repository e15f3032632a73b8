"""What new rows say: who is promoted, who is beaten, who drifts, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.champions.champion import Challenger, Champion
from tuning.champions.comparison import RowComparison
from tuning.champions.drift import Drift, LossSoFar, drifting
from tuning.champions.evidence import Evidence
from tuning.champions.promotion import Contest, Decisions, decide
from tuning.champions.release import DECISIONS, GROUPS
from tuning.champions.releases import Releases
from tuning.champions.rules import promotion_rules
from tuning.champions.rules.rule import BEATEN, PROMOTED
from tuning.champions.sizes import group_gains, size_of
from tuning.data.customers import Customer
from tuning.errors import UntrustedCodeError
from tuning.refresh.groups import UNKNOWN
from tuning.refresh.new_losses import NewRowsReader, said_of
from tuning.refresh.plan import RefreshPlan


@dataclass
class Verdicts:
    """Looks at new rows before anything learns from them.

    Attributes:
        champions, challengers: by customer; both are changed by `reach`.
        notes: by customer, why something was not done.
        faulty: customers whose champion cannot serve any more, and why.
        groups: the evidence by size of customers.
    """

    plan: RefreshPlan
    releases: Releases
    reader: NewRowsReader
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
        """The champions that new rows were seen of, the surest to drift first."""
        seen = [
            (name, LossSoFar.of_json(each.drift), each.hold_out_loss)
            for name, each in self.champions.items()
            if each.drift is not None and each.hold_out_loss is not None
        ]
        if not seen:
            return []
        names, so_far, promised = zip(*seen, strict=True)
        evidence, means = [each.evidence for each in so_far], [each.mean for each in so_far]
        return drifting(names, evidence, means, promised, self.plan.options.false_discoveries)

    def _look_at(self, customer: Customer) -> None:
        name = customer.id
        champion, challenger = self.champions[name], self.challengers.get(name)
        try:
            frame, where = self.reader.rows_of(customer)
        except Exception as error:  # of the user's own code, too
            self.notes[name] = f"its new rows were not looked at: {said_of(error)}"
            return
        try:
            seen = self.reader.seen(champion, frame, where)
        except UntrustedCodeError:
            raise  # one word allows it for all
        except Exception as error:
            self.faulty[name] = f"the champion cannot serve: {said_of(error)}"
            return
        losses = seen.losses()
        if champion.hold_out_loss is not None:
            drift = LossSoFar.of_json(champion.drift).after(
                losses, champion.hold_out_loss, self.plan.options.drift_tolerance, champion.hold_out_error or 0.0
            )
            self.champions[name] = replace(champion, drift=drift.to_json())
        if challenger is None:
            return
        try:
            before = self.reader.kept(challenger)
            after = self.reader.against(seen, challenger)
        except UntrustedCodeError:
            raise
        except Exception as error:
            self.notes[name] = f"its challenger was not compared: {said_of(error)}"
            return
        self.challengers[name] = replace(challenger, comparison=after.to_json())
        self._note_week(champion, before, after)

    def _note_week(self, champion: Champion, before: RowComparison | None, after: RowComparison) -> None:
        if before is None or not before.rows:
            return  # in which losses a gain counts is told by earlier rows
        size = str(size_of(np.array([champion.rows]))[0])
        saved = (after.champion - after.challenger) - (before.champion - before.challenger)
        week = float(saved) / (after.rows - before.rows), float(before.champion) / before.rows
        self._weeks.setdefault(size, []).append(week)

    def _compared(self, challenger: Challenger) -> bool:
        return challenger.customer in self.faulty or self.reader.kept(challenger) is not None

    def _contest(self, challenger: Challenger) -> Contest:
        name = challenger.customer
        comparison = self.reader.kept(challenger) or self.reader.nothing_yet()
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


def groups_of(table: pa.Table | None) -> dict[str, Evidence]:
    """The evidence of a release, by size."""
    rows = [] if table is None else table.to_pylist()
    return {row["size"]: Evidence.of_dict(json.loads(row["evidence"])) for row in rows}


def groups_table(groups: Mapping[str, Evidence]) -> pa.Table:
    """The evidence by size as a table of a release."""
    texts = [json.dumps(each.to_dict()) for each in groups.values()]
    return pa.table({"size": pa.array(list(groups), pa.string()), "evidence": pa.array(texts, pa.string())})
