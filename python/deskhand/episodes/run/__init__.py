"""A run of many episodes."""
