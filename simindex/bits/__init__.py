"""Pure functions of the bits of a fingerprint: distances, block designs, probabilities of flips."""
