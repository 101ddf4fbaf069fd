"""What the axes of a computation are for, and the sizes of their tiles."""
