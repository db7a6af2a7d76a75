"""What other projects' APIs call a thing, and that it is here as they describe it: a table for each of them.

`declared` has the classes as those projects document them; the tests compare ours with them, field by field, and try what their
documents say that they do.
"""
