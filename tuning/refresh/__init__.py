"""What a week of new rows changes, and what it costs."""
