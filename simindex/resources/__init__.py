"""What the machine gives a call: its threads, and its share of the memory."""
