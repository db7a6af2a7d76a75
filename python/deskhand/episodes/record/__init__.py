"""What an episode leaves: its record, frames, exports."""
