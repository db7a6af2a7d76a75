"""What may be done: rules, limits, questions, the audit log."""
