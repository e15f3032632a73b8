"""What a comparison shows: tables, plots, a page."""
