"""What the service remembers: runs, events, tokens, plans and schedules, in SQLite or PostgreSQL."""
