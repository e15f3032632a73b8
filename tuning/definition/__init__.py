"""What the user may write."""
