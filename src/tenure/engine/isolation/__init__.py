"""Where a handler runs: in the worker's event loop, in one of its threads, or in a child process.

All three take a `Work` and give back how the run ended; none of them touches the database.
"""
