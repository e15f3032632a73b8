"""Is the answer good? Our winners beside models with their defaults and other tools, on rows that nobody saw."""
