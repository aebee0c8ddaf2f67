"""A real PostgreSQL run by Tenure itself, for installations that have no database server yet.

    binaries    which PostgreSQL programs to run
    account     who runs them: never root
    home        where things lie on disk, and who may reach them
    launch      the last step before PostgreSQL's own code: give up root, die with the parent
    cluster     the data directory: made once, whole or not at all
    postmaster  what a running server says about itself
    server      start, adopt, stop
    throwaway   a server for the length of a test

Whoever holds a data directory's owner lock runs the server as its own child; anyone else who starts the same
directory meanwhile is given the running server's address.
"""

from tenure.wiring.embedded.binaries import PgBinaries, find_binaries
from tenure.wiring.embedded.server import EmbeddedServer, ServerAddress, erase, running_address
from tenure.wiring.embedded.throwaway import throwaway_server

__all__ = [
    "EmbeddedServer",
    "PgBinaries",
    "ServerAddress",
    "erase",
    "find_binaries",
    "running_address",
    "throwaway_server",
]
