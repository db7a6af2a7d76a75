"""The desktop for coroutines: generated from `Desktop`."""
