"""Candidate rules from equal graphs, without those that follow by one use of another rule.

in     relu(relu(x1)) equals the class of relu(x1), for x1, x2, x3
step   renaming (one of three), common subgraph, subsumption, pairs with two outputs
out    candidate rules at the preset's shapes: relu(relu(x1)) == relu(x1)
"""
