"""Skylines and skybands of rows that stand still."""
