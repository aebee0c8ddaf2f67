"""What ships for tests, Tenure's own and its users'."""
