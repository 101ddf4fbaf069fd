"""The competitors, each at its best: one module with `create() -> Peer` a kind."""
