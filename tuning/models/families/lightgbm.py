"""LightGBM, an optional extra (`pip install 'tuning-service[lightgbm]'`); a step is ten boosting rounds.

Uses the Booster API on arrays with one Dataset per fold, built once and shared by all trials. Missing values and
text columns are handled natively. Parameters: learning_rate, num_leaves, min_child_samples, subsample,
colsample_bytree, reg_lambda, reg_alpha, and any other training parameter; n_estimators sets the rounds of a full
trial (default 200).

A Booster cannot be copied with its random state, so a trial's state is the story of its rounds, and going on from
it trains them again: exact, cheap to keep, and only paid for by an exploit or a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tuning.models.base import Config, EncodedRows, Grown, SteppedFamily, raw_prediction
from tuning.models.compute import threads
from tuning.models.estimators import check_names, rows_of_a_leaf
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task

if TYPE_CHECKING:
    from lightgbm import Booster, Dataset

#: Stretches of a trial's training: parameters, and how many rounds were boosted with them.
LightGBMStory: TypeAlias = Sequence[tuple[Config, int]]
#: The rounds so far, the raw predictions of the validation rows, and the trees counted in them.
LightGBMState: TypeAlias = "tuple[LightGBMStory, np.ndarray, int]"

BINNING = (
    *("max_bin", "max_bins", "min_data_in_bin", "bin_construct_sample_cnt", "subsample_for_bin"),
    *("enable_bundle", "bundle", "is_enable_bundle", "linear_tree", "linear_trees"),
)
# LightGBM's `reset_parameter` keeps the rows that were drawn before: with other shares it trains on what is left of
# them, or on freed memory, which ends the process.
SAMPLING = (
    *("bagging_fraction", "sub_row", "subsample", "bagging", "bagging_freq", "subsample_freq", "bagging_by_query"),
    *("pos_bagging_fraction", "pos_sub_row", "pos_subsample", "pos_bagging"),
    *("neg_bagging_fraction", "neg_sub_row", "neg_subsample", "neg_bagging"),
    *("boosting", "boosting_type", "boost", "data_sample_strategy"),
)
# Other names of min_child_samples; who uses one means the number as it is.
LEAF_ALIASES = {"min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf"}
# What LightGBM reads, writes or connects to by itself, with all aliases.
OPENS = frozenset(
    (
        *("config", "config_file", "convert_model", "convert_model_file"),
        *("data", "data_filename", "train", "train_data", "train_data_file"),
        *("forcedbins_filename", "forced_splits", "forced_splits_file", "forced_splits_filename"),
        *("forcedsplits_filename", "fs", "input_model", "model_in", "model_input"),
        *("local_listen_port", "local_port", "port", "machine_list", "machine_list_file", "machine_list_filename"),
        *("mlist", "machines", "nodes", "workers", "model_out", "model_output", "output_model"),
        *("name_pred", "output_result", "pred_name", "predict_name", "predict_result", "prediction_name"),
        *("prediction_result", "parser_config_file", "test", "test_data", "test_data_file"),
        *("valid", "valid_data", "valid_data_file", "valid_filenames"),
    )
)
OBJECTIVES = {REGRESSION: "regression", BINARY: "binary", MULTICLASS: "multiclass"}


class LightGBMFamily(SteppedFamily):
    name = "lightgbm"
    encoding = "ordinal"
    scale = False
    requires = "lightgbm"
    libraries = ("lightgbm",)
    file = "model.txt"
    length = "n_estimators"
    step_length = 10
    total_steps = 20
    frozen = frozenset({*BINNING, *SAMPLING})
    opens = OPENS
    simpler = (("num_leaves", "smaller"), ("min_child_samples", "larger"), ("reg_lambda", "larger"))

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Booster:
        return _boosted(train, [(self._params(config, train, task, seed), self.units(config, steps))])

    def grow(
        self,
        config: Config,
        train: EncodedRows,
        valid: EncodedRows,
        task: Task,
        seed: int,
        state: LightGBMState | None = None,
    ) -> Iterator[Grown]:
        params = self._params(config, train, task, seed)
        story, raw, counted = state or ((), np.zeros(()), 0)
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
                    valid.X,
                    start_iteration=counted,
                    num_iteration=trees - counted,
                    raw_score=True,
                    num_threads=threads(),
                )
                counted = trees
            yield raw_prediction(raw, task), partial(_frozen, story, raw, counted)

    def fitted(self, state: LightGBMState, train: EncodedRows, task: Task, seed: int) -> Booster:
        return _boosted(train, state[0])

    def predict(self, model: Booster, rows: EncodedRows, task: Task) -> Prediction:
        return raw_prediction(model.predict(rows.X, raw_score=True, num_threads=threads()), task)

    def save(self, model: Booster) -> tuple[str, bytes]:
        return self.file, model.model_to_string().encode()

    def load(self, name: str, content: bytes) -> Booster:
        import lightgbm

        return lightgbm.Booster(model_str=content.decode())

    @staticmethod
    def _params(config: Config, train: EncodedRows, task: Task, seed: int) -> Config:
        check_names(FAMILY, config, _known())
        params = {
            "objective": OBJECTIVES[task.kind],
            "num_threads": threads(),
            "verbosity": -1,
            "deterministic": True,
            "force_row_wise": True,  # the choice would be made by timing both
            "feature_pre_filter": False,  # one Dataset serves all values of min_child_samples
            "subsample_freq": 1,  # without it subsample does nothing
            "seed": seed % 2**31,
        }
        if task.kind == MULTICLASS:
            params["num_class"] = len(task.classes)
        params |= {name: value for name, value in config.items() if name != LightGBMFamily.length}
        if not LEAF_ALIASES & config.keys():
            params["min_child_samples"] = rows_of_a_leaf(config.get("min_child_samples", 20), train)
        return params


@cache
def _known() -> frozenset[str]:
    """Return names of training parameters: the estimators', the trainer's, and its aliases."""
    import lightgbm
    from lightgbm.basic import _ConfigAliases

    aliases = _ConfigAliases._get_all_param_aliases()
    return frozenset({*lightgbm.LGBMModel().get_params(), *aliases}.union(*aliases.values()))


def _frozen(story: LightGBMStory, raw: np.ndarray, counted: int) -> LightGBMState:
    return story, raw, counted


def _boosted(train: EncodedRows, story: LightGBMStory) -> Booster:
    """Return a Booster that has trained these rounds, each stretch with its own parameters but for the frozen ones."""
    import lightgbm

    first = current = story[0][0]
    booster = lightgbm.Booster(first, _dataset(train, first))
    for params, rounds in story:
        if params != current:
            booster.reset_parameter({name: params[name] for name in params if name not in LightGBMFamily.frozen})
        current = params
        for _ in range(rounds):
            booster.update()
    return booster


def _dataset(rows: EncodedRows, params: Config) -> Dataset:
    import lightgbm

    binning = {name: params[name] for name in BINNING if name in params}
    key = ("lightgbm", *binning.items())
    if key not in rows.cache:
        rows.cache[key] = lightgbm.Dataset(
            rows.X,
            label=rows.y,
            weight=rows.weight,
            categorical_feature=list(rows.categorical),
            params={"feature_pre_filter": False, "num_threads": threads(), "verbosity": -1, **binning},
            free_raw_data=False,
        ).construct()
    return rows.cache[key]


FAMILY = LightGBMFamily()
