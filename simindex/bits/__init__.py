"""Pure functions of the bits of a fingerprint: distances, block designs, flip chances."""
