"""Desktops on this machine."""
