"""What commands print: lines of prose, tables, and what a search has come to."""
