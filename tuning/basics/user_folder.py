"""The folder in which this program keeps what is a user's own, outside of all runs."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "TUNING_CONFIG"  # names the folder in place of the user's config folder


def user_folder() -> Path | None:
    """It need not be there yet; None for a user without a home."""
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        from platformdirs import user_config_path

    folder = Path(chosen) if chosen else user_config_path("tuning-service", appauthor=False)
    return folder if folder.is_absolute() else None
