"""Values and pure machines that every room uses: nothing here opens, waits or starts anything."""
