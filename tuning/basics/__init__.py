"""Words of messages, waits, seeds, environments, documents and columns of values, which every package needs."""
