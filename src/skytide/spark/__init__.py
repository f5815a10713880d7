"""skytide on Spark."""
