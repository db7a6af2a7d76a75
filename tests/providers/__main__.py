"""Write the tables of docs/providers.md anew."""

from providers.table import write

write()
