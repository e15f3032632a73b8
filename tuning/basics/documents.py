"""Documents: what JSON, YAML and rows of a table hold, by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

#: A document as it was read. Whoever reads it knows its keys and their types.
Json: TypeAlias = Mapping[str, Any]
#: A value per hyperparameter, under the estimator's own argument names.
Config: TypeAlias = Mapping[str, Any]
