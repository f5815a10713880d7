"""Skylines and skybands of the most recent rows."""
