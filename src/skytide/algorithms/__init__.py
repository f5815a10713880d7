"""The published algorithms: arrays in, arrays out."""
