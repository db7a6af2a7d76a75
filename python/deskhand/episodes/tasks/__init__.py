"""Tasks: their setup, instructions and grading."""
