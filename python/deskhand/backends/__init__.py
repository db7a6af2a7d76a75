"""The ways to reach a desktop: one module each, all with the methods of `deskhand.backends.protocols.Backend`."""
