"""simindex within other programs: what they call, by their own conventions."""
