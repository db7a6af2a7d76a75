"""The ways to reach a desktop, one module each. All have the methods of `deskhand.backends.protocols.Backend`."""
