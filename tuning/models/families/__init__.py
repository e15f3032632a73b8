"""One file per model family; `tuning.models.registry` finds them by their `FAMILY`."""
