"""What a refresh is worth, week after week, beside other ways: `python -m benchmarks.weeks`."""
