from conformance.table import write

write()
