"""Index values and the accesses to buffers."""
