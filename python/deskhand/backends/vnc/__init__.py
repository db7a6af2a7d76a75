"""The VNC backend."""
