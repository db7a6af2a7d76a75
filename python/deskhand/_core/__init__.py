"""Values and pure machines that every room uses. Nothing here opens, waits for or starts anything."""
