"""Words of messages, waits, seeds, documents and columns of values, which every package needs."""
