"""The key `mlflow`: what of a run is copied, and where to."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator

from tuning.definition.options import Options
from tuning.definition.reach import PLAIN, URI, PlainText
from tuning.storage.names import mask

SERVERS = ("http", "https", "databricks", "databricks-uc", "uc")  # of MLflow's tracking URIs
DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
EXAMPLE = "sqlite:///mlflow.db"
RECORD_TRIALS = r"auto|all|none|top:[1-9][0-9]{0,8}"


class MLflowOptions(Options):
    """The copy of a run in MLflow."""

    enabled: bool = Field(
        True, description="Whether a run is copied to MLflow. `mlflow: false` is short for `{enabled: false}`."
    )
    tracking_uri: Annotated[str | None, URI] = Field(
        None,
        description="Database or tracking server to write to. By default the environment's `MLFLOW_TRACKING_URI`, "
        "else `sqlite:///<run>/mlflow.db`.",
    )
    experiment: PlainText | None = Field(
        None, description="Name of the experiment. By default it is the definition's name."
    )
    record_trials: Annotated[str, PLAIN, WithJsonSchema({"type": "string", "pattern": f"^({RECORD_TRIALS})$"})] = Field(
        "auto",
        description="Which trials of a study get a run of their own: `all`, `top:K` for the best K, or `none`. `top:1` "
        "also keeps the customers' runs short. `auto` is `all` for up to 50,000 studies, and `top:1` beyond.",
    )
    record_models: Literal["auto", "all", "none"] = Field(
        "auto",
        description="Which winners are logged as MLflow models. `auto` logs all of them for up to a hundred customers.",
    )
    registered_models: Literal["release", "none"] = Field(
        "release",
        description="What champions become in MLflow's registry: a model whose versions are the releases, or nothing.",
    )

    @field_validator("record_trials")
    @classmethod
    def _record_trials(cls, value: str) -> str:
        if not re.fullmatch(RECORD_TRIALS, value):
            raise ValueError(f"{value!r} must be auto, all, none or top:K with a whole number K, such as top:5")
        return value

    def refusal(self) -> str | None:
        """Return why no copy can reach the tracking URI, as far as its text shows; else None."""
        uri = self.tracking_uri if self.enabled else None
        scheme = (uri or "").partition(":")[0].split("+")[0].lower()
        if not uri or scheme in SERVERS:
            return None
        shown = f"mlflow.tracking_uri: {mask(uri)!r}"
        if scheme in DATABASES:
            in_memory = scheme == "sqlite" and not uri.partition("://")[2].partition("?")[0].partition("/")[2]
            return f"{shown} is a database in memory; name a file, such as {EXAMPLE}" if in_memory else None
        if scheme == "file" or "://" not in uri:
            allowed = os.environ.get("MLFLOW_ALLOW_FILE_STORE", "").lower() in ("true", "1")
            closed = f"{shown} is a folder, and MLflow no longer writes to folders; name a database, such as {EXAMPLE}"
            return None if allowed else closed
        if any(plugin.name == scheme for plugin in entry_points(group="mlflow.tracking_store")):
            return None
        return f"{shown}: MLflow knows no {scheme}://; use one of {', '.join((*SERVERS, *DATABASES))}"


MANY_STUDIES = 50_000  # beyond, a database of all trials is tens of gigabytes, and nobody looks at single ones


def trials_recorded(chosen: str, studies: int) -> str:
    """Return `record_trials` for so many studies, with `auto` resolved.

    >>> trials_recorded("auto", 50_000), trials_recorded("auto", 50_001), trials_recorded("none", 50_001)
    ('all', 'top:1', 'none')
    """
    if chosen != "auto":
        return chosen
    return "top:1" if studies > MANY_STUDIES else "all"


def _mlflow_switch(value: object) -> object:
    if value in ("on", "off"):  # words of YAML that stay text, since classes are called so too
        value = value == "on"
    if not isinstance(value, bool | Mapping | MLflowOptions):
        raise ValueError(f"{value!r} is neither true nor false, nor a mapping such as {{experiment: churn}}")
    return {"enabled": value} if isinstance(value, bool) else value


MLflow: TypeAlias = Annotated[
    MLflowOptions,
    BeforeValidator(_mlflow_switch, json_schema_input_type=bool | Literal["on", "off"] | MLflowOptions),
]
"""The same, or true or false."""
