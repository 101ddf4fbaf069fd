"""Values of operator graphs over a finite field, by which equal ones are found."""
