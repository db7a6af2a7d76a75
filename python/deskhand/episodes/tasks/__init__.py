"""Tasks: what is set up, asked for and graded."""
