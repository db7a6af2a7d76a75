"""Making desktops, and keeping the processes that belong to them."""
