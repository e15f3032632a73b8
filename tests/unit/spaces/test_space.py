"""The core that a study needs: spaces, presets and searchers, as a user meets them."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

from search_spaces import Choice, Constant, Float, Int, SearchSpace, SpaceError, algorithms, presets


def test_import_is_light() -> None:
    code = (
        "import search_spaces, sys; search_spaces.presets.load('ridge'); search_spaces.algorithms.parse('optuna');"
        "search_spaces.SearchSpace.from_dict(search_spaces.presets.load('xgboost').to_dict());"
        "print([m for m in ('ray', 'optuna', 'hyperopt', 'numpy', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_readme_example() -> None:
    space = SearchSpace(
        [
            Choice("model", ["ridge", "xgboost"], default="ridge"),
            Float("alpha", 1e-4, 1e3, log=True, default=1.0, when={"model": "ridge"}),
            Int("max_depth", 1, 10, default=6, when={"model": "xgboost"}),
            Constant("seed", 3),
        ],
        constraints=[lambda config: config.get("max_depth") != 7],
    )
    assert space.default() == {"model": "ridge", "alpha": 1.0, "seed": 3}
    rng = np.random.default_rng(0)
    seen = [space.sample(rng) for _ in range(200)]
    assert all(space.contains(config) for config in seen)
    assert {config["model"] for config in seen} == {"ridge", "xgboost"}
    assert all(("alpha" in config) == (config["model"] == "ridge") for config in seen)
    assert 7 not in {config.get("max_depth") for config in seen}


@pytest.mark.parametrize("name", ["random", "optuna", {"name": "optuna", "profile": "v4"}])
def test_searcher_contract_in_short(name: object) -> None:
    space = presets.load("tabular-regression")
    before = (random.getstate(), np.random.get_state()[1].tolist())

    def run(n_trials: int) -> list[dict]:
        searcher = algorithms.parse(name).build(
            space, metric="score", mode="max", seed=5, n_trials=n_trials, points=[space.default()]
        )
        configs = []
        for i in range(n_trials):
            config = searcher.suggest(str(i))
            configs.append(config)
            score = {3: float("nan"), 4: None}.get(i, -abs(config.get("max_depth", 4) - 4.0))
            result = {"score": score, "training_iteration": 2, "stopped": i % 5 == 0}
            searcher.on_trial_complete(str(i), None if i == 6 else result, error=i == 7)
        searcher.on_trial_complete("nobody", {"score": 1.0})
        return configs

    first = run(25)
    assert first[0] == space.default()
    assert first == run(25)
    assert all(space.contains(config) for config in first)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_no_optuna_trial_is_left_running() -> None:
    from optuna.trial import TrialState

    searcher = algorithms.parse("optuna").build(presets.load("ridge"), metric="m", mode="min", seed=0)
    for i, result in enumerate([{"m": 1.0}, {"m": float("nan")}, None, {"other": 1}, {"m": 1.0, "stopped": True}]):
        searcher.suggest(str(i))
        searcher.on_trial_complete(str(i), result, error=i == 2)
    states = [trial.state for trial in searcher.proposer.study.get_trials(deepcopy=False)]
    assert states[0] == TrialState.COMPLETE
    assert TrialState.RUNNING not in states


def test_unknown_option_names_the_nearest() -> None:
    with pytest.raises(SpaceError, match="did you mean 'n_startup_trials'"):
        algorithms.parse({"name": "optuna", "n_startup_trial": 3})
    with pytest.raises(SpaceError, match="did you mean 'optuna'"):
        algorithms.parse("optna")
