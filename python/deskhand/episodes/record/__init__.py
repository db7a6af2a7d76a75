"""The record of an episode: events, frames, exports."""
