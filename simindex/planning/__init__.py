"""Plans as data: how to answer a call, what it costs, and the constants of the machine."""
