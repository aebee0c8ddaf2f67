-- snapshot: all statements of this transaction see the same moment, so that the numbers agree with each other.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
