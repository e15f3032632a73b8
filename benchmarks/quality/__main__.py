"""`python -m benchmarks.quality`: is our answer better than a model that nobody tuned?

    python -m benchmarks.quality                       all sets, all contenders
    python -m benchmarks.quality --quick               every third customer, fewer contenders, under ten minutes
    python -m benchmarks.quality --output json         one JSON object last
    python -m benchmarks.quality --report DIR          errors.csv and report.md in DIR

Every customer's rows are divided once per repetition: 80 % are given, 20 % are seen by no contender. The error is the
root mean squared error or the log loss. CPU seconds are those of a contender's whole tree of processes, imports and
Ray's start included, divided by customers.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
import time
from pathlib import Path

import click
import pandas as pd

from benchmarks.measure import run_watched
from benchmarks.quality.contenders import REFERENCE, contenders
from benchmarks.quality.judgement import Judgement
from benchmarks.quality.rounds import Answers, Round, error, rounds
from benchmarks.quality.sets import NotHereError, sets

QUICK = (
    "ours_8", "ours_20", "ours_20_no_portfolio", "linear", "random_forest", "extra_trees", "xgboost", "catboost",
    "vote", "flaml", "nothing",
)  # fmt: skip


@click.command()
@click.option("--quick", is_flag=True, help="Every third customer, fewer contenders.")
@click.option("--sets", "chosen_sets", metavar="NAMES", help="Sets, separated by commas.")
@click.option("--contenders", "chosen", metavar="NAMES", help="Contenders, separated by commas.")
@click.option("--repetitions", default=1, show_default=True, help="Outer splits of every customer.")
@click.option("--every", default=1, show_default=True, help="Take every n-th customer of a set.")
@click.option("--rows", type=int, metavar="N", help="Give N rows of every customer at most.")
@click.option("--report", type=click.Path(file_okay=False, path_type=Path), help="Folder for errors.csv and report.md.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(
    quick: bool,
    chosen_sets: str | None,
    chosen: str | None,
    repetitions: int,
    every: int,
    rows: int | None,
    report: Path | None,
    output: str,
) -> None:
    """Compare our winners with models that nobody tuned, and with other tools."""
    names = chosen.split(",") if chosen else [*(QUICK if quick else contenders())]
    named = chosen_sets.split(",") if chosen_sets else [*sets()]
    all_rounds = _rounds(named, repetitions, 3 if quick else every, rows)
    judgement = judge(all_rounds, names)
    ours = REFERENCE if REFERENCE in judgement.core_s else next(iter(judgement.core_s))
    text = tables(judgement, ours)
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
        judgement.errors.to_csv(report / "errors.csv", index=False)
        (report / "report.md").write_text(text + "\n")
    click.echo(text, err=output == "json")
    if output == "json":
        click.echo(json.dumps(judgement.figures(ours)))


def judge(all_rounds: list[Round], names: list[str]) -> Judgement:
    """Run contenders one after the other, ours first: FLAML's time and MLJAR's is what ours took."""
    rows: list[tuple[str, str, int, str, float]] = []
    core_s: dict[str, float] = {}
    trial_errors: dict[str, dict[str, list[float]]] = {}
    for name in sorted(names, key=lambda name: not name.startswith("ours")):
        if missing := contenders()[name].missing:
            click.echo(f"{name}: left out, {missing}", err=True)
            continue
        seconds = core_s.get(REFERENCE, 1.0)
        began = time.monotonic()
        answers, used = _answers(name, all_rounds, seconds)
        core_s[name] = used / len(all_rounds)
        took = f"{time.monotonic() - began:.0f} s, {core_s[name]:.2f} core-s per customer"
        unanswered = f", {len(answers.without_model)} without a model" if answers.without_model else ""
        click.echo(f"{name}: {took}{unanswered}", err=True)
        rows += [
            (one.customer.set, one.customer.name, one.repetition, name, error(one, answers.values[one.key]))
            for one in all_rounds
        ]
        if answers.trial_errors:
            trial_errors[name] = answers.trial_errors
    errors = pd.DataFrame(rows, columns=["set", "customer", "repetition", "contender", "error"])
    return Judgement(errors, core_s, trial_errors)


def tables(judgement: Judgement, ours: str) -> str:
    """Over all sets, then set by set, in Markdown."""
    parts = []
    for part in (None, *judgement.errors["set"].unique()):
        found = judgement.against(ours, part)
        customers = len(judgement.table() if part is None else judgement.table().loc[[part]])
        lines = [
            f"### {'All sets' if part is None else part}: {customers} customers",
            "",
            f"| contender | mean rank | core-s per customer | {ours}: better / tie / worse | median error of {ours} "
            "against it | p (Wilcoxon) |",
            "|---|---|---|---|---|---|",
        ]
        for name, row in found.iterrows():
            lines.append(
                f"| {contenders()[str(name)].title} | {row['mean_rank']:.2f} | {row['core_s']:.2f} "
                f"| {row['better']:.0f} / {row['tie']:.0f} / {row['worse']:.0f} | {100 * row['median']:+.1f} % "
                f"| {row['p']:.2g} |"
            )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _rounds(names: list[str], repetitions: int, every: int, most: int | None) -> list[Round]:
    found: list[Round] = []
    for name in names:
        try:
            customers = list(sets()[name]())
        except NotHereError as error_:
            click.echo(f"{name}: left out, {error_}", err=True)
            continue
        found += [one for customer in customers[::every] for one in rounds(customer, repetitions, most)]
    if not found:
        sys.exit("no set is here")
    return found


def _answers(name: str, all_rounds: list[Round], seconds: float) -> tuple[Answers, float]:
    """(answers by round, CPU seconds of the whole tree)."""
    with tempfile.TemporaryDirectory() as folder:
        given, wanted = Path(folder, "rounds.pickle"), Path(folder, "answers.pickle")
        given.write_bytes(pickle.dumps(all_rounds))
        arguments = ["-m", "benchmarks.quality.contenders", name, str(given), str(wanted), str(seconds)]
        usage = run_watched(arguments, float("inf"))
        answers = pickle.loads(wanted.read_bytes())
    return answers, sum(usage.cpu(0.0, time.time()).values())


if __name__ == "__main__":
    main()
