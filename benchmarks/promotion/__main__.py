"""`python -m benchmarks.promotion`: does promotion keep its promise, and how long does it take to find who is better?

    python -m benchmarks.promotion                      all questions, minutes of one core
    python -m benchmarks.promotion --only promise       false promotions, also where rare disasters hide
    python -m benchmarks.promotion --only power         who is found by which week
    python -m benchmarks.promotion --only nulls         e-values of challengers that are exactly as good
    python -m benchmarks.promotion --only expected      whom the rule `expected` promotes
    python -m benchmarks.promotion --forms all          other forms of evidence beside ours
    python -m benchmarks.promotion --repetitions 20     fewer than 200

It counts CPU seconds. Nothing is read, trained or written.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click
import numpy as np

from benchmarks.promotion.draws import BEYOND, NULLS, Customers
from benchmarks.promotion.forms import FORMS
from benchmarks.promotion.weeks import FALSE_DISCOVERIES, HOLD_OUT, WEEKS, weeks_of
from tuning.champions.comparison import RowComparison
from tuning.champions.evidence import Evidence
from tuning.champions.shrinkage import most_no_better, shrunken
from tuning.champions.sizes import group_gains

ROWS = (20, 100, 500)
CUSTOMERS = 1000
NOTHING, SOME, ALL = (
    Customers.of(CUSTOMERS),
    Customers.of(CUSTOMERS, disasters=0.05),
    Customers.of(CUSTOMERS, disasters=1),
)
#: Challengers of the promise: what they are, and how many may be promoted falsely: share of the promoted, of all.
PROMISES = {
    "nothing improved": NOTHING,
    "one in twenty has rare disasters": SOME,
    "all have rare disasters": ALL,
    "a tenth gains 5 %": Customers.of(CUSTOMERS, better=0.1),
    "a tenth gains 5 %, one in twenty has rare disasters": Customers.of(CUSTOMERS, better=0.1, disasters=0.05),
}
GROUPS = {
    "nothing improved": NOTHING,
    "all have rare disasters": ALL,
    "a tenth gains 5 %": Customers.of(CUSTOMERS, better=0.1),
    "three tenths gain 5 %": Customers.of(CUSTOMERS, better=0.3),
    "three tenths gain 10 %": Customers.of(CUSTOMERS, better=0.3, gain=0.1),
    "all gain 1 %": Customers.of(CUSTOMERS, better=1.0, gain=0.01),
}
GAINS = (0.01, 0.02, 0.05, 0.1)
FAILING = ("t-test and BH each week", "clipped bets")


def promise(forms: list[str], repetitions: int) -> None:
    """False promotions within eight weeks."""
    print("| form | challengers | rows a week | false of the promoted | promoted of the others | found | CPU-s |")
    print("|---|---|---|---|---|---|---|")
    for form in dict.fromkeys([*forms, *FAILING]):
        for name, customers in PROMISES.items():
            for rows in ROWS:
                begun = time.process_time()
                # Five times fewer of the five times longer, and of those that only show how they fail.
                count = max(repetitions // (5 if form != "ours" or rows == 500 else 1), 2)
                found = weeks_of(form, customers, rows, count)
                share = "–" if np.isnan(found.found[-1]) else f"{found.found[-1]:.0%}"
                print(
                    f"| {form} | {name} | {rows} | {found.false_share:.1%} ± {found.error:.1%} | {found.falsely:.2%} "
                    f"| {share} | {time.process_time() - begun:.0f} |",
                    flush=True,
                )


def power(forms: list[str], repetitions: int) -> None:
    """Who is found by which week: a tenth of the challengers is better."""
    print(f"| form | true gain | rows a week | {' | '.join(f'week {week + 1}' for week in range(WEEKS))} |")
    print("|---|---|---|" + "---|" * WEEKS)
    for form in forms:
        for gain in GAINS:
            for rows in ROWS:
                found = weeks_of(
                    form, Customers.of(CUSTOMERS, 0.1, gain), rows, max(repetitions // 10, 2), seed=1
                ).found
                print(f"| {form} | {gain:.0%} | {rows} | {' | '.join(f'{share:.0%}' for share in found)} |", flush=True)


def nulls(forms: list[str], repetitions: int) -> None:
    """e-values where the challenger is exactly as good: their mean at the end, and how often their largest is large."""
    print("| form | differences | rows | mean e-value | largest is 10, 20, 100 or more (at most 10, 5, 1 %) |")
    print("|---|---|---|---|---|")
    for form in forms:
        for name in NULLS | BEYOND:
            for rows in ROWS:
                count = repetitions * (100 if rows < 500 else 20)
                means, largest = null_values(form, name, rows, count, 1.0 if name.startswith("0/1") else np.inf)
                above = ", ".join(f"{(largest >= np.log(limit)).mean():.1%}" for limit in (10, 20, 100))
                error = means.std() / np.sqrt(len(means))
                print(f"| {form} | {name} | {WEEKS * rows} | {means.mean():.3f} ± {error:.3f} | {above} |", flush=True)


def null_values(form: str, name: str, rows: int, count: int, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """(count,) e-values after eight weeks, and the logarithms of the largest that anybody saw at the end of a week."""
    draw = (NULLS | BEYOND)[name]
    values, largest = [], []
    for part in range(0, count, CUSTOMERS):
        rng = np.random.default_rng([part, rows, list(NULLS | BEYOND).index(name)])
        size = min(CUSTOMERS, count - part)
        gathered = FORMS[form](draw(rng, (size, HOLD_OUT)), bound)
        best = np.full(size, -np.inf)
        for _ in range(WEEKS):
            gathered.see(draw(rng, (size, rows)))
            log_e = gathered.log_e()
            best = np.maximum(best, log_e)
        values.append(np.exp(log_e))
        largest.append(best)
    return np.concatenate(values), np.concatenate(largest)


def expected(_: list[str], repetitions: int) -> None:
    """The rule `expected`: whether the group is sure, who is promoted then, how many are no better."""
    print("| challengers | rows a week | group sure, week | promoted | no better: said | truly | mean gain | at most |")
    print("|---|---|---|---|---|---|---|---|")
    for name, customers in GROUPS.items():
        for rows in ROWS:
            found = [expected_of(customers, rows, seed) for seed in range(max(repetitions // 10, 2))]
            sure = [each for each in found if each is not None]
            cells = _means(np.array(sure)) if sure else ["", "–", "–", "–", "–"]
            share, best = len(sure) / len(found), np.maximum(customers.true_gain, 0).mean()
            print(f"| {name} | {rows} | {share:.0%}{' | '.join(cells)} | {best:.2%} |", flush=True)


def _means(sure: np.ndarray) -> list[str]:
    week, promoted, low, high, truly, gain = sure.mean(axis=0)
    return [f", {week:.1f}", f"{promoted:.0f}", f"{low:.0%} to {high:.0%}", f"{truly:.0%}", f"{gain:+.2%}"]


def expected_of(customers: Customers, rows: int, seed: int) -> tuple[float, ...] | None:
    """The week in which the group is sure, the number of promoted, the share of them that is no better as the rule says
    (from, to) and truly, and the mean true gain of all customers; None where the group is never sure.
    """
    rng = np.random.default_rng([seed, rows])
    ones = np.ones((len(customers.gain), rows))
    comparison = RowComparison.start(customers.draw(rng, HOLD_OUT))
    group = Evidence.start(customers.draw(rng, HOLD_OUT).mean(axis=1))
    for week in range(WEEKS):
        d = customers.draw(rng, rows)
        comparison = comparison.after(ones, ones - d)
        group = group.after(group_gains(d.mean(axis=1), ones[:, 0]))
        if group.log_e() >= np.log(1 / FALSE_DISCOVERIES):
            count = np.full(len(ones), comparison.rows)
            held = shrunken(comparison.gain(), comparison.gain_error(), count)
            chosen = held.gain > 0
            many = max(int(chosen.sum()), 1)
            low, high = held.no_better(0.0)[chosen].sum(), most_no_better(comparison.gain(), chosen, 0.0)
            wrong = (customers.true_gain[chosen] <= 0).sum()
            gain = float(np.where(chosen, customers.true_gain, 0).mean())
            return week + 1, float(chosen.sum()), float(low / many), high / many, float(wrong / many), gain
    return None


QUESTIONS: dict[str, Callable[[list[str], int], None]] = {
    "promise": promise,
    "power": power,
    "nulls": nulls,
    "expected": expected,
}


@click.command()
@click.option("--only", type=click.Choice(list(QUESTIONS)), help="One question.")
@click.option("--forms", default="ours", show_default=True, help="Names of forms, separated by commas, or all.")
@click.option("--repetitions", default=200, show_default=True, help="Of eight weeks of 1,000 customers.")
def main(only: str | None, forms: str, repetitions: int) -> None:
    """Whether promotion keeps its promise."""
    names = list(FORMS) if forms == "all" else forms.split(",")
    for name, ask in QUESTIONS.items():
        if only in (None, name):
            begun = time.process_time()
            print(f"\n{name}: {ask.__doc__}\n")
            ask(names, repetitions)
            print(f"\n{time.process_time() - begun:.0f} CPU-s", flush=True)


if __name__ == "__main__":
    main()
