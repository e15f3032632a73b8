"""One file per model family; `tuning.models` finds them."""
