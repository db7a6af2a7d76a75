"""Pools of desktops: which caller gets which desktop, and when one is replaced."""
