"""The only room that speaks SQL to Tenure's own database.

One statement lives in one file, `sql/<noun>/<verb>.sql`, and has one typed function of the same name in `<noun>.py`.
Rules are not here: `core` decides, a statement guards and writes. Every function takes the open connection first, so
that rooms above can put several of them in one transaction. Times come from the database's clock; tests pass `now`.

Order of locks: queue, job, export, package.
"""
