"""The calls of other packages, with what they return: an import is all that changes."""
