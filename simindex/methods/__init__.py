"""Where to look: a method finds candidate rows in a table, and a kernel decides what matches."""
