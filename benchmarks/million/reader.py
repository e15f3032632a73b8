"""How long a reader that has looked at a run takes to find and load one customer's model; prints one JSON object.

python -m benchmarks.million.reader RUN CUSTOMERS SEED
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time

LOADED = 50


def main(run: str, customers: int, seed: int) -> None:
    """Load one model to warm up, then some at random."""
    from tuning import RunResult

    began = time.monotonic()
    result = RunResult(run)
    result.model("0")
    first = time.monotonic() - began
    took = []
    for number in random.Random(seed).sample(range(customers), min(LOADED, customers)):
        began = time.perf_counter()
        result.model(str(number))
        took.append(1000 * (time.perf_counter() - began))
    print(json.dumps({"first_s": first, "median_ms": statistics.median(took), "most_ms": max(took)}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
