"""What the service costs beyond the fits themselves: `throughput` against everybody, `million` for size."""
