"""The desktop: one object that acts, waits for the screen and reports, with any backend."""
