"""A second copy of an index: what may become one, its files and catalog, the folder it replaces."""
