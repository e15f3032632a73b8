"""Recorded evaluations of a complete grid: the tables that searches are replayed on.

One row per task, configuration and step:

| column | meaning |
|---|---|
| task | what was evaluated: the customer |
| config | the configuration as JSON; or instead a column `param.<name>` per parameter, empty where it does not exist |
| score | at this step; missing when the evaluation failed there |
| step | optional: 1, 2, … within the evaluation; without it every evaluation has one step |
| seconds | optional: what this step cost |
| mode | `max` or `min`; may be given as an argument instead |
| replicate | optional: repeated evaluations of the same grid; seed s sees replicate s modulo their number |
| best_step | optional: true where an evaluation's best step counts (every prefix is a model), else its last |

Every task has the same configurations. A Parquet file may carry the search space that the grid was made from (the
YAML form as JSON, in the metadata `tuning.space`); without it the space is read off the values, and every
parameter exists everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from schedulers.direction import Mode, worth_of
from search_spaces import SearchSpace, SpaceError
from search_spaces.values import Configuration, PlainValue, Point
from tuning.basics.wording import amount
from tuning.compare.analysis.curves import MODES, read_frame
from tuning.compare.tabular.levels import Levels, inferred_space
from tuning.errors import DataError
from tuning.notes import Note
from tuning.records.schema import canonical

PARAM = "param."
SPACE_KEY = b"tuning.space"


@dataclass(frozen=True)
class Evaluations:
    """All configurations of one task and replicate; arrays are configuration x step.

    Attributes:
        scores, seconds: NaN beyond the last step.
        counts: steps per configuration.
        best_step: per configuration, whether the best step counts instead of the last.
    """

    scores: np.ndarray
    seconds: np.ndarray
    counts: np.ndarray
    best_step: np.ndarray

    def finals(self, mode: str) -> np.ndarray:
        """Return the full score of each configuration; NaN where it failed."""
        rows = np.arange(len(self.counts))
        reached = np.arange(self.scores.shape[1]) < self.counts[:, None]
        failed = (reached & np.isnan(self.scores)).any(axis=1)
        worth = np.where(reached & ~np.isnan(self.scores), worth_of(self.scores, mode), -np.inf)
        best = worth_of(worth.max(axis=1), mode)
        last = self.scores[rows, self.counts - 1]
        return np.where(failed, np.nan, np.where(self.best_step, best, last))


@dataclass(frozen=True)
class Table:
    """A complete table.

    Attributes:
        configs: the configurations, with the values they were evaluated with.
        levels: the grid as a search space; its numbers are positions of levels, so that every suggestion is a row.
        modes: direction per task.
        evaluations: per task one `Evaluations` per replicate.
        space: the space that the grid was made from, or as read off the values.
        notes: what was left out of it.
    """

    configs: tuple[Configuration, ...]
    levels: Levels
    modes: Mapping[str, Mode]
    evaluations: Mapping[str, Sequence[Evaluations]]
    space: SearchSpace
    notes: tuple[Note, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.evaluations)

    @cached_property
    def row(self) -> dict[str, int]:
        """Row of a configuration of the level space, by its canonical text."""
        return {canonical(self.levels.positions(config)): number for number, config in enumerate(self.configs)}

    @staticmethod
    def family(config: Point) -> str:
        """Return which cohort a configuration belongs to: its model's, where it has one."""
        return str(config.get("model", ""))

    @cached_property
    def max_steps(self) -> dict[str, int]:
        """Steps of a full evaluation, per family."""
        counts = np.max([found.counts for replicates in self.evaluations.values() for found in replicates], axis=0)
        found: dict[str, int] = {}
        for config, count in zip(self.configs, counts, strict=True):
            found[self.family(config)] = max(int(count), found.get(self.family(config), 1))
        return found

    @classmethod
    def read(cls, path: str | Path, mode: str | None = None) -> Table:
        """Read a table from a CSV or Parquet file; see the module for its columns.

        Raises:
            DataError: the file cannot be read, or the table is not complete.
        """
        return cls.from_frame(read_frame(path), mode, _stored_space(Path(path)))

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, mode: str | None = None, space: SearchSpace | None = None) -> Table:
        """Make a table from its rows.

        Args:
            frame: the rows; see the module for its columns.
            mode: "max" or "min", where there is no column `mode`.
            space: the space that the grid was made from; without it the space is read off the values.
        """
        _check_columns(frame, mode)
        texts, configs = _configs(frame)
        numbers = {text: number for number, text in enumerate(configs)}
        parsed = tuple(json.loads(text) for text in configs)
        try:
            levels = Levels.of(space or inferred_space(parsed), parsed)
            for config in parsed:
                levels.positions(config)
        except SpaceError as error:
            raise DataError(f"The table's configurations do not fit its search space: {error}") from error
        rows = pd.DataFrame(
            {
                "task": frame["task"].astype(str),
                "replicate": frame.get("replicate", 0),
                "config": texts.map(numbers),
                "step": frame["step"].astype(int) if "step" in frame else 1,
                "score": pd.to_numeric(frame["score"]).astype(float),
                "seconds": pd.to_numeric(frame["seconds"]).astype(float).fillna(0.0) if "seconds" in frame else 0.0,
                "best_step": frame["best_step"].astype(bool) if "best_step" in frame else False,
                "mode": mode or frame.get("mode"),
            }
        )
        modes = _modes(rows)
        evaluations: dict[str, list[Evaluations]] = {}
        for (task, replicate), part in rows.groupby(["task", "replicate"], sort=False):
            evaluations.setdefault(str(task), []).append(_evaluations(part, len(parsed), f"{task}", replicate))
        return cls(parsed, levels, modes, evaluations, levels.space)

    def frame(self) -> pd.DataFrame:
        """Return the table's rows, with the configurations as JSON."""
        parts = []
        texts = np.array([canonical(config) for config in self.configs], dtype=object)
        for task, replicates in self.evaluations.items():
            for replicate, found in enumerate(replicates):
                config, step = np.nonzero(np.arange(found.scores.shape[1]) < found.counts[:, None])
                part = {
                    "task": task,
                    "config": texts[config],
                    "step": step + 1,
                    "score": found.scores[config, step],
                    "seconds": found.seconds[config, step],
                    "mode": self.modes[task],
                    "replicate": replicate,
                    "best_step": found.best_step[config],
                }
                parts.append(pd.DataFrame(part))
        return pd.concat(parts, ignore_index=True)

    @staticmethod
    def target(path: str | Path) -> Path:
        """Return the path of a table to write; `DataError` for a name that a table cannot have."""
        target = Path(path)
        if target.suffix != ".parquet":
            raise DataError(f"{str(path)!r}: a table is written as .parquet, which keeps its search space.")
        if target.is_dir():
            raise DataError(f"{str(path)!r} is a folder; name a file in it, such as {str(target / 'grid.parquet')!r}.")
        return target

    def write(self, path: str | Path) -> Path:
        """Write a Parquet file that carries its search space."""
        target = self.target(path)
        arrow = pa.Table.from_pandas(self.frame(), preserve_index=False)
        metadata = {**(arrow.schema.metadata or {}), SPACE_KEY: json.dumps(self.space.to_dict()).encode()}
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(arrow.replace_schema_metadata(metadata), target, compression="zstd")
        return target

    def bounds(self) -> pd.DataFrame:
        """Return columns task, best, reference: optimum and median over configurations (replicates averaged)."""
        rows = []
        for task in self.tasks:
            scores = self.finals(task)
            best = np.nanmax(scores) if self.modes[task] == "max" else np.nanmin(scores)
            rows.append({"task": task, "best": float(best), "reference": float(np.nanmedian(scores))})
        return pd.DataFrame(rows)

    def finals(self, task: str) -> np.ndarray:
        """Return the full score of each configuration; NaN where it failed."""
        return np.mean([found.finals(self.modes[task]) for found in self.evaluations[task]], axis=0)


def _check_columns(frame: pd.DataFrame, mode: str | None) -> None:
    params = [name for name in frame.columns if str(name).startswith(PARAM)]
    missing = [name for name in ("task", "score") if name not in frame.columns]
    if "config" not in frame.columns and not params:
        missing.append("config (or param.<name>)")
    if "mode" not in frame.columns and mode is None:
        missing.append('mode (or say mode="max" or mode="min")')
    if missing:
        raise DataError(f"The table has no column {', '.join(missing)}; see docs/compare.md.")
    if frame.empty:
        raise DataError("The table has no rows.")


def _configs(frame: pd.DataFrame) -> tuple[pd.Series, list[str]]:
    """Return the canonical text of each row's configuration, and all different ones in order."""
    if "config" in frame.columns:
        known = frame["config"].astype(str)
        try:
            canonical_of = {text: canonical(json.loads(text)) for text in known.unique()}
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"Column config of the table must hold JSON objects: {error}.") from error
        texts = known.map(canonical_of)
    else:
        params = [name for name in frame.columns if str(name).startswith(PARAM)]
        keys = frame[params].astype(object).where(frame[params].notna(), None)
        group = frame.groupby(params, dropna=False, sort=False).ngroup()
        first = ~group.duplicated()
        rows = zip(group[first], keys[first].itertuples(index=False), strict=True)
        names = [str(name).removeprefix(PARAM) for name in params]
        text_of = {
            number: canonical({n: _item(v) for n, v in zip(names, row, strict=True) if v is not None})
            for number, row in rows
        }
        texts = group.map(text_of)
    return texts, list(dict.fromkeys(texts))


def _item(value: np.generic | PlainValue) -> PlainValue:
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _modes(rows: pd.DataFrame) -> dict[str, Mode]:
    found = rows.groupby("task", sort=False)["mode"].unique()
    for task, modes in found.items():
        if len(modes) != 1 or modes[0] not in MODES:
            raise DataError(f"Task {task!r} has mode {', '.join(map(repr, modes))}; it must be either max or min.")
    return {str(task): "max" if modes[0] == "max" else "min" for task, modes in found.items()}


def _evaluations(rows: pd.DataFrame, count: int, task: str, replicate: object) -> Evaluations:
    where = f"Task {task!r}" + (f", replicate {replicate}" if replicate else "")
    configs, steps = rows["config"].to_numpy(), rows["step"].to_numpy()
    if rows.duplicated(["config", "step"]).any():
        raise DataError(f"{where}: a configuration and step appear twice in the table.")
    counts = np.bincount(configs, minlength=count)
    if (counts == 0).any():
        raise DataError(
            f"{where}: the table is not complete, {int((counts == 0).sum())} of {amount(count, 'configuration')} are "
            "missing. Every task needs every configuration (a failed one as a row without score)."
        )
    width = int(steps.max())
    scores, seconds = np.full((count, width), np.nan), np.full((count, width), np.nan)
    if steps.min() < 1 or (np.bincount(configs, weights=steps) != counts * (counts + 1) / 2).any():
        raise DataError(f"{where}: steps must count 1, 2, 3, … within each configuration.")
    scores[configs, steps - 1] = rows["score"].to_numpy()
    seconds[configs, steps - 1] = rows["seconds"].to_numpy()
    best = np.zeros(count, dtype=bool)
    best[configs] = rows["best_step"].to_numpy()
    return Evaluations(np.where(np.isfinite(scores), scores, np.nan), seconds, counts, best)


def _stored_space(path: Path) -> SearchSpace | None:
    if path.suffix != ".parquet":
        return None
    text = (pq.read_schema(path).metadata or {}).get(SPACE_KEY)
    try:
        return None if text is None else SearchSpace.from_dict(json.loads(text))
    except (SpaceError, ValueError) as error:
        raise DataError(f"{path}: its search space cannot be read: {error}") from error
