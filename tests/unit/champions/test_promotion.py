"""Who is promoted, by each rule, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuning.champions.comparison import RowComparison
from tuning.champions.evidence import Evidence
from tuning.champions.losses import MetricSoFar
from tuning.champions.promotion import Contest, Decision, decide
from tuning.champions.proposal import Proposal
from tuning.champions.rules import promotion_rules
from tuning.champions.sizes import group_gains, size_of
from tuning.errors import RunError

RULES = promotion_rules()
SURE_GROUP = {"100 rows or more": Evidence.start(np.empty(0), bound=1.0).after(np.full(200, 0.2))}


def contest(customer: str, gain: float, rows: int = 1000, metric: MetricSoFar | None = None) -> Contest:
    rng = np.random.default_rng(list(customer.encode()))
    champion = rng.gamma(4.0, size=(2, rows)) / 4
    challenger = champion * (1 - gain) + rng.normal(scale=0.1, size=champion.shape)
    started = RowComparison.start((champion - challenger)[0], metric=metric)
    return Contest(customer, started.after(champion[1], challenger[1]), fitted_rows=500)


CONTESTS = [contest("better", 0.2), contest("like", 0.0), contest("worse", -0.2), contest("young", 0.2, rows=2)]


def outcomes(rule: str, contests: list[Contest] = CONTESTS) -> dict[str, str]:
    found = decide(contests, RULES[rule], SURE_GROUP).decisions
    assert [each.customer for each in found] == [each.customer for each in contests]
    return {each.customer: each.outcome for each in found}


def test_there_are_five_rules() -> None:
    assert list(RULES) == ["ask", "expected", "never", "newest", "sure"]
    assert all(rule.name == name and rule.summary for name, rule in RULES.items())


def test_each_rule_decides_in_its_own_way() -> None:
    assert outcomes("sure") == {"better": "promoted", "like": "stands", "worse": "beaten", "young": "stands"}
    assert outcomes("ask") == outcomes("sure") | {"better": "proposed"}
    assert outcomes("never") == outcomes("sure") | {"better": "stands"}
    assert set(outcomes("newest").values()) == {"promoted"}
    assert outcomes("expected")["better"] == "promoted"
    assert outcomes("expected")["worse"] == "beaten"


def test_expected_waits_until_challengers_of_a_size_are_better_as_a_group() -> None:
    (found,) = decide([contest("better", 0.2)], RULES["expected"], {}).decisions
    assert found.outcome == "stands"
    assert "challengers of customers of 100 rows or more are not surely better as a group" in found.reason


def test_expected_says_how_many_are_likely_no_better() -> None:
    few = [contest(f"c{place}", 0.02, rows=40) for place in range(60)]
    found = decide(few, RULES["expected"], SURE_GROUP)
    promoted = sum(each.outcome == "promoted" for each in found.decisions)
    assert promoted > 0
    assert found.said_of_all.startswith(f"Of {promoted} promoted ")
    assert "are likely no better" in found.said_of_all
    assert decide(few, RULES["sure"], SURE_GROUP).said_of_all == ""


def test_a_decision_says_its_figures_and_its_reason() -> None:
    better, like, worse, _ = decide(CONTESTS, RULES["sure"], {}).decisions
    assert better.champion_loss == pytest.approx(1.0, abs=0.05)
    assert better.challenger_loss == pytest.approx(0.8, abs=0.05)
    assert better.gain == pytest.approx(0.2, abs=0.02)
    assert better.e_value is not None
    assert better.threshold == 40
    assert better.e_value > 40
    assert better.reason.startswith("better on 1,000 new rows: e-value ")
    assert better.reason.endswith(", 40 is enough")
    assert like.threshold == 20
    assert like.reason.startswith("not sure on 1,000 new rows: e-value ")
    assert worse.reason.startswith("surely worse on 1,000 new rows: e-value ")


def test_who_was_promoted_before_counts_on() -> None:
    """So that the promise holds for the promoted of all weeks together."""
    alone = decide(CONTESTS, RULES["sure"], {}).decisions
    among = decide(CONTESTS, RULES["sure"], {}, earlier=[12.0] * 6 + [-3.0] * 90).decisions
    assert alone[1].threshold == 20  # 4 / (0.1 * 2)
    assert among[1].threshold == 125  # 100 / (0.1 * 8)


def test_a_metric_that_got_worse_keeps_a_challenger_from_being_promoted() -> None:
    weeks = {"as good": MetricSoFar(100, 0.7, 0.7), "worse": MetricSoFar(100, 0.7, 0.69), "unknown": MetricSoFar()}
    contests = [contest(name, 0.2, metric=metric) for name, metric in weeks.items()]
    for rule in ("sure", "expected"):
        assert outcomes(rule, contests) == {"as good": "promoted", "worse": "stands", "unknown": "stands"}
    assert "the metric itself" in decide(contests, RULES["sure"], {}).decisions[1].reason


def test_a_champion_that_cannot_serve_is_replaced_without_a_test() -> None:
    broken = replace(contest("young", -0.2, rows=2), fault="the champion is worse than a constant")
    (found,) = decide([broken], RULES["sure"], {}).decisions
    assert (found.outcome, found.reason) == ("promoted", "the champion is worse than a constant")
    assert (found.e_value, found.threshold) == (None, None)
    for rule, outcome in {"never": "stands", "ask": "proposed"}.items():
        assert outcomes(rule, [broken]) == {"young": outcome}


def test_without_contests_there_are_no_decisions() -> None:
    for rule in RULES.values():
        assert decide([], rule, SURE_GROUP).decisions == ()


def test_a_proposal_is_read_as_it_was_written_and_may_be_shortened() -> None:
    decisions = decide(CONTESTS, RULES["ask"], {}).decisions
    proposal = Proposal.of("shops", 7, decisions)
    assert [each.customer for each in proposal.decisions] == ["better"]
    assert Proposal.of_json(proposal.to_json(), "proposal.json") == proposal
    assert isinstance(proposal.decisions[0], Decision)
    shortened = proposal.model_copy(update={"decisions": ()})
    assert Proposal.of_json(shortened.to_json(), "proposal.json").decisions == ()


@pytest.mark.parametrize("text", ["", "{}", '{"name": "a", "parent": 1, "decisions": [{"customer": "x"}]}'])
def test_a_file_that_is_no_proposal_is_refused(text: str) -> None:
    with pytest.raises(RunError, match=r"^mine\.json: .*refresh again"):
        Proposal.of_json(text, "mine.json")


def test_a_customer_has_the_size_of_its_rows() -> None:
    assert size_of(np.array([0, 99, 100, 5000, 10**6])).tolist() == [
        "under 100 rows",
        "under 100 rows",
        "100 rows or more",
        "1,000 rows or more",
        "10,000 rows or more",
    ]


def test_a_group_gathers_what_its_customers_gain() -> None:
    shares = group_gains(np.array([0.1, 5.0, -3.0, 0.1]), np.array([1.0, 2.0, 1.0, 0.0]))
    assert shares.tolist() == [0.1, 1.0, -3.0, 1.0]
