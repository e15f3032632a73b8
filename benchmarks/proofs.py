"""What the proofs share: an interval for paired differences, and the place of a result in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from scipy.stats import t

PAGE = Path(__file__).resolve().parent.parent / "docs" / "schedulers.md"


def interval(differences: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Mean of paired differences with its Student t interval."""
    count = len(differences)
    mean = float(np.mean(differences))
    if count < 2:
        return mean, float("-inf"), float("inf")
    half = float(t.ppf(0.5 + level / 2, count - 1) * np.std(differences, ddof=1) / np.sqrt(count))
    return mean, mean - half, mean + half


def write_section(name: str, text: str) -> None:
    """Put a result between its marks in docs/schedulers.md."""
    page = PAGE.read_text()
    pattern = rf"<!-- {name} -->.*?<!-- /{name} -->"
    PAGE.write_text(re.sub(pattern, lambda _: f"<!-- {name} -->\n{text}\n<!-- /{name} -->", page, flags=re.DOTALL))
