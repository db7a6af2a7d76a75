"""Episodes as the environments of other frameworks."""
