"""Classes as other projects document them: fields in their order, types, defaults, members. Nothing here does anything."""
