"""Rules found at concrete shapes become rules for all shapes.

in     split0[1, 4](concat[1](x1, x2)) == x1, x1 (2, 4), x2 (2, 4)
step   inputs for shared parts, sizes for numbers, the condition it needs
out    split0[1, x1.1](concat[1](?x1, ?x2)) == ?x1
"""
