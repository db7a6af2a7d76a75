"""Programs, shells and files of the machine that a desktop stands on."""
