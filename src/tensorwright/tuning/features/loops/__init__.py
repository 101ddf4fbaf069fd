"""The loops of statements as arrays, and features that are functions of them."""
