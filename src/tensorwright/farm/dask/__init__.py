"""A farm whose units a Dask cluster distributes.  Its modules need the extra `farm`."""
