"""LightGBM, an optional extra (`pip install 'tuning-service[lightgbm]'`); a step is ten boosting rounds.

Uses the Booster API on arrays with one Dataset per fold, built once and shared by all trials. Missing values and
text columns are handled natively. Parameters: learning_rate, num_leaves, min_child_samples, subsample,
colsample_bytree, reg_lambda, reg_alpha, and any other training parameter; n_estimators sets the rounds of a full
trial (default 200).

A Booster cannot be copied with its random state, so a trial's state is the story of its rounds, and going on from
it trains them again: exact, cheap to keep, and only paid for by an exploit or a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from tuning.models.base import Matrix, SteppedFamily
from tuning.models.estimators import check_names
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task

BINNING = ("max_bin", "min_data_in_bin", "bin_construct_sample_cnt", "enable_bundle", "linear_tree")
OBJECTIVES = {REGRESSION: "regression", BINARY: "binary", MULTICLASS: "multiclass"}


class LightGBMFamily(SteppedFamily):
    name = "lightgbm"
    encoding = "ordinal"
    scale = False
    requires = "lightgbm"
    file = "model.txt"
    length = "n_estimators"
    step_length = 10
    total_steps = 20
    frozen = frozenset({*BINNING, "boosting", "boosting_type"})

    def fit(self, config: Mapping[str, Any], train: Matrix, task: Task, seed: int, steps: int | None = None) -> Any:
        return _boosted(train, [(self._params(config, task, seed), self.units(config, steps))])

    def grow(
        self, config: Mapping[str, Any], train: Matrix, valid: Matrix, task: Task, seed: int, state: Any = None
    ) -> Iterator[tuple[Prediction, Callable[[], Any]]]:
        params = self._params(config, task, seed)
        story, raw, counted = state or ((), 0.0, 0)
        booster = _boosted(train, [*story, (params, 0)])
        done = sum(rounds for _, rounds in story)
        while done < self.units(config):
            rounds = min(self.step_length, self.units(config) - done)
            for _ in range(rounds):
                booster.update()
            done += rounds
            story = (*story, (params, rounds))
            trees = booster.current_iteration()  # fewer than rounds when nothing could be split any more
            if trees > counted:
                raw = raw + booster.predict(
                    valid.X, start_iteration=counted, num_iteration=trees - counted, raw_score=True, num_threads=1
                )
                counted = trees
            yield _prediction(raw, task), partial(_frozen, story, raw, counted)

    def fitted(self, state: Any, train: Matrix, task: Task, seed: int) -> Any:
        return _boosted(train, state[0])

    def predict(self, model: Any, rows: Matrix, task: Task) -> Prediction:
        return _prediction(model.predict(rows.X, raw_score=True, num_threads=1), task)

    def save(self, model: Any) -> tuple[str, bytes]:
        return self.file, model.model_to_string().encode()

    def load(self, name: str, content: bytes) -> Any:
        import lightgbm

        return lightgbm.Booster(model_str=content.decode())

    @staticmethod
    def _params(config: Mapping[str, Any], task: Task, seed: int) -> dict[str, Any]:
        check_names("lightgbm", config, _known())
        params = {
            "objective": OBJECTIVES[task.kind],
            "num_threads": 1,
            "verbosity": -1,
            "deterministic": True,
            "force_row_wise": True,  # the choice would be made by timing both
            "feature_pre_filter": False,  # one Dataset serves all values of min_child_samples
            "subsample_freq": 1,  # without it subsample does nothing
            "seed": seed % 2**31,
        }
        if task.kind == MULTICLASS:
            params["num_class"] = len(task.classes)
        return params | {name: value for name, value in config.items() if name != LightGBMFamily.length}


@cache
def _known() -> frozenset[str]:
    """Names of training parameters: the estimators', the trainer's, and its aliases."""
    import lightgbm
    from lightgbm.basic import _ConfigAliases

    aliases = _ConfigAliases._get_all_param_aliases()
    return frozenset({*lightgbm.LGBMModel().get_params(), *aliases}.union(*aliases.values()))


def _frozen(story: tuple[Any, ...], raw: Any, counted: int) -> tuple[Any, ...]:
    return story, raw, counted


def _boosted(train: Matrix, story: Sequence[tuple[dict[str, Any], int]]) -> Any:
    """A Booster that has trained these rounds, each stretch with its own parameters."""
    import lightgbm

    booster, current = None, None
    for params, rounds in story:
        if booster is None:
            booster = lightgbm.Booster(params, _dataset(train, params))
        elif params != current:
            booster.reset_parameter(params)
        current = params
        for _ in range(rounds):
            booster.update()
    return booster


def _dataset(rows: Matrix, params: Mapping[str, Any]) -> Any:
    import lightgbm

    binning = {name: params[name] for name in BINNING if name in params}
    key = ("lightgbm", *binning.items())
    if key not in rows.cache:
        rows.cache[key] = lightgbm.Dataset(
            rows.X,
            label=rows.y,
            weight=rows.weight,
            categorical_feature=list(rows.categorical),
            params={"feature_pre_filter": False, "num_threads": 1, "verbosity": -1, **binning},
            free_raw_data=False,
        ).construct()
    return rows.cache[key]


def _prediction(raw: Any, task: Task) -> Prediction:
    import numpy as np
    from scipy.special import expit, softmax

    if task.kind == REGRESSION:
        return Prediction(values=raw)
    if task.kind == BINARY:
        positive = expit(raw)
        proba = np.column_stack([1.0 - positive, positive])
    else:
        proba = softmax(raw, axis=1)
    return Prediction(values=proba.argmax(axis=1), proba=proba)


FAMILY = LightGBMFamily()
