"""Pools of desktops: who gets which, and when one is made anew."""
