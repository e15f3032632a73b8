"""What rules of promotion promise and find, on customers that are drawn: `python -m benchmarks.promotion`."""
