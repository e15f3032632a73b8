"""The pictures of all customers say what the figures say, and which hyperparameters matter is found."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib import pyplot

from tuning.reporting.figure import drawn_svg
from tuning.runs import plots
from tuning.runs.optuna_study import parameter_effects

TWO = json.dumps([{"family": "ridge", "trial": 1}, {"family": "xgboost", "trial": 2}], separators=(",", ":"))
CUSTOMERS = pa.table(
    {
        "gain": pa.array([0.2, -0.1, 0.3, None]),
        "test_score": pa.array([0.7, 0.6, 0.9, None]),
        "baseline_test_score": pa.array([0.5, 0.7, 0.6, None]),
        "rows": pa.array([100, 20, 5000, 3]),
        "family": pa.array(["ridge", "ridge", "mlp", None]),
        "ensemble": pa.array([None, TWO, None, None], pa.string()),
        "status": pa.array(["ok", "ok", "ok", "no_model"]),
        "seconds": pa.array([1.0, 2.0, 90.0, 0.1]),
    }
)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_gains_are_bars_with_the_largest_first() -> None:
    axes = plots.gains(CUSTOMERS, "r2")
    assert axes.get_title() == "Better than the baseline for 2 of 3 customers"
    assert [bar.get_height() for bar in axes.patches] == [0.3, 0.2, -0.1]


def test_errors_of_different_sizes_are_seen_beside_each_other() -> None:
    customers = pa.table({"gain": [1.0, 25.0, -1.0], "test_score": [9900.0, 1.5, 404.0], "rows": [9] * 3})
    axes = plots.gains(customers, "rmse")
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([25.0, 1.0, -1.0])
    assert "% of its rmse" in axes.get_ylabel()
    axes = plots.score_and_size(customers, "rmse")
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    assert low < 1.5 < 9900 < high


def test_the_marks_of_sizes_do_not_run_into_each_other() -> None:
    axes = plots.score_and_size(pa.table({"test_score": [0.5, 0.6, 0.7], "rows": [21, 300, 700]}), "r2")
    axes.figure.draw_without_rendering()
    marks = [tick.label1.get_text() for tick in axes.xaxis.get_major_ticks()]
    assert {"20", "50", "100", "200", "500"} <= set(marks)
    assert not any(tick.label1.get_text() for tick in axes.xaxis.get_minor_ticks())


def test_one_customer_does_not_ruin_the_scale_and_is_named() -> None:
    gain = [5.0, 8.0, 3.0, -2.0, 6.0, -929.0, 4.0]
    score = [7.0, 8.0, 9.0, 7.5, 8.5, 184.0, 8.2]
    customers = pa.table(
        {"customer": list("abcdePg"), "gain": gain, "test_score": score, "rows": [9, 8, 7, 6, 5, 4, 3]}
    )
    axes = plots.gains(customers, "rmse")
    assert axes.get_ylim()[0] > -20
    assert [text.get_text() for text in axes.texts] == ["beyond the scale: P -929"]
    axes = plots.gains(customers.drop_columns("customer"), "rmse")  # as the summary in MLflow has them
    assert [text.get_text() for text in axes.texts] == ["beyond the scale: -929"]
    axes = plots.score_and_size(customers, "rmse")
    assert axes.get_ylim()[1] < 20
    assert [text.get_text() for text in axes.texts] == ["beyond the scale: P 184"]
    far = customers.set_column(2, "test_score", pa.array([7.0, 8.0, 9.0, 7.5, 8.5, 7530.0, 8.2]))
    axes = plots.score_and_size(far, "rmse")
    assert axes.get_ylim()[1] < 20, "a logarithm would press all others onto a line, and name nobody"
    assert [text.get_text() for text in axes.texts] == ["beyond the scale: P 7530"]
    both = customers.append_column("baseline_test_score", pa.array([7.5, 8.5, 9.0, 7.0, 9.5, 18.0, 8.0]))
    axes = plots.baseline_and_tuned(both, "rmse")
    assert max(axes.get_xlim()[1], axes.get_ylim()[1]) < 20
    assert [text.get_text() for text in axes.texts] == ["beyond the scale: P 184", "beyond the scale: P 18"]
    usual = plots.gains(customers.filter(pa.array([each > -900 for each in gain])), "rmse")
    assert not usual.texts


@pytest.mark.long
def test_a_million_gains_are_as_many_bars_as_there_are_pixels() -> None:
    axes = plots.gains(pa.table({"gain": np.linspace(-1, 1, 100_000)}), "r2")
    assert len(axes.patches) == plots.MOST_BARS
    assert axes.get_title() == "Better than the baseline for 50,000 of 100,000 customers"


def test_customers_without_a_score_are_no_dots() -> None:
    assert plots.baseline_and_tuned(CUSTOMERS, "r2").collections[0].get_offsets().shape == (3, 2)
    axes = plots.score_and_size(CUSTOMERS, "r2")
    assert axes.collections[0].get_offsets().tolist() == [[100, 0.7], [20, 0.6], [5000, 0.9]]
    assert axes.get_xscale() == "log"


def test_families_that_win_are_counted_and_so_are_members_of_ensembles() -> None:
    axes = plots.winning_families(CUSTOMERS)
    names = [label.get_text() for label in axes.get_yticklabels()]
    wins, helps = ([bar.get_width() for bar in bars] for bars in axes.containers)
    assert dict(zip(names, wins, strict=True)) == {"ridge": 2, "mlp": 1, "xgboost": 0}
    assert dict(zip(names, helps, strict=True)) == {"ridge": 0, "mlp": 0, "xgboost": 1}


def test_a_picture_is_drawn_into_given_axes_and_is_the_same_bytes_each_time() -> None:
    drawn = [drawn_svg(lambda ax: plots.gains(CUSTOMERS, "r2", ax)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert not pyplot.get_fignums()  # a figure of nobody's


def trials(studies: int, each: int) -> pd.DataFrame:
    """Trials with scores by `alpha`, on a scale of each study's own; `beta` and `kind` say nothing."""
    rng = np.random.default_rng(0)
    rows = []
    for study in range(studies):
        offset, scale = rng.normal(scale=100), rng.uniform(1, 1000)
        for trial in range(each):
            alpha = rng.uniform()
            config = {"model": "ridge", "alpha": alpha, "beta": rng.uniform(), "kind": str(rng.choice(["a", "b"]))}
            rows.append(
                {
                    "study": f"s{study}",
                    "trial": trial,
                    "family": "ridge",
                    "state": "finished",
                    "score": offset - scale * abs(alpha - 0.5),
                    "config": json.dumps(config),
                }
            )
    return pd.DataFrame(rows)


def test_the_parameter_that_decides_is_found_whatever_scale_each_customer_has() -> None:
    effects = parameter_effects(trials(20, 8), "max")
    first, *others = effects
    assert first == "ridge alpha"
    assert set(others) == {"ridge beta", "ridge kind"}
    assert max(effects[name] for name in others) < 0.1 * effects[first]
    axes = plots.parameters_across_customers(effects)
    assert axes.get_yticklabels()[-1].get_text() == "ridge alpha"


def test_a_parameter_that_only_some_configurations_have_is_judged_by_these() -> None:
    rows = trials(20, 8)
    configs = [json.loads(config) for config in rows["config"]]
    for number, config in enumerate(configs):
        config.update({"depth": None if number % 3 else number % 5, "fixed": 1})
        if number % 2:
            del config["beta"]
    effects = parameter_effects(rows.assign(config=[json.dumps(config) for config in configs]), "max")
    assert next(iter(effects)) == "ridge alpha"
    assert set(effects) == {"ridge alpha", "ridge beta", "ridge depth", "ridge kind"}


def test_too_few_configurations_tell_nothing_of_parameters() -> None:
    assert parameter_effects(trials(1, 3), "max") == {}
    assert parameter_effects(trials(60, 1), "max") == {}  # alone in its study, a trial is neither better nor worse
    few = trials(20, 3)
    assert parameter_effects(few.assign(config=[*few["config"][:3]] * 20), "max") == {}  # all tried the same three


def test_a_configuration_of_many_customers_counts_once() -> None:
    alone = trials(10, 8)
    pair = alone[:2].assign(study="twins", trial=[0, 1], score=[0.0, 1.0])
    many = pd.concat([pair.assign(study=f"t{copy}") for copy in range(500)])
    once, often = (parameter_effects(pd.concat([alone, more]), "max") for more in (pair, many))
    assert often == pytest.approx(once, abs=0.1)


def test_a_parameters_name_is_its_own_where_an_objective_is_tuned() -> None:
    assert "alpha" in parameter_effects(trials(20, 8).assign(family=None), "max")
