"""Where rows come from.

A source is opened for one export, gives one consistent read-only view of its database, and is closed with it. Nothing a
caller wrote reaches it except as a quoted literal, cast to the column's own type; names come from the catalogue alone.
Bytes leave it in big blocks, as PostgreSQL formats them: a row is never a Python object.
"""
