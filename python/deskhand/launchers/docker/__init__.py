"""Desktops in containers."""
