"""The page that a run leaves behind: one HTML file that answers at first sight."""
