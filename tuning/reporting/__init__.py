"""Pages of HTML that need nothing else."""
