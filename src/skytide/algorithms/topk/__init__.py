"""The best k rows by one score: published algorithms and honest outsiders."""
