"""Policies: rules for what is allowed, rate limits, questions to a person, the audit log."""
