"""What commands print: lines of prose, tables, and the results of a search."""
