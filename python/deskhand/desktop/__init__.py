"""The desktop: one object that acts, waits for the screen and reports, whatever backend it stands on."""
