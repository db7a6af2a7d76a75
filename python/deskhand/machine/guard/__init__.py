"""The guard process of a desktop, which imports only what starts fast, and nothing of the rest of the package."""
