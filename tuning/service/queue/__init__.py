"""Who is next? Shares, quotas, and the claim."""
