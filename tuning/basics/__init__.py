"""Words of messages, waits, seeds and columns of values, which every package needs."""
