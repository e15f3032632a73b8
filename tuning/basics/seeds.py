"""Seeds that depend on names, never on order: the same study draws the same numbers wherever and whenever it runs."""

from __future__ import annotations

import hashlib


def derive(seed: int, *names: object) -> int:
    """A 63-bit seed from a run's seed and the names of what it is for."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


def trial_seed(study_seed: int, number: int) -> int:
    """The seed of a trial's training, in the range that libraries take."""
    return derive(study_seed, "trial", number) % 2**31
