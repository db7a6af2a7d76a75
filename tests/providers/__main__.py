"""Write the README's tables of providers anew."""

from providers.table import write

write()
