"""Values of operator graphs over a finite field, by which equal ones are found.

relu(relu(x)) and relu(x), x (2, 3)           two terms at shapes
x random modulo a prime, two samples           residues (2, 6) of both
62 bits for each sample, alike for both        they are taken for equal
"""
