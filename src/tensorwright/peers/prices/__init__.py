"""The times of operators and networks in another runtime. Read `peer_prices.py`."""

from tensorwright.peers.prices.peer_prices import PeerPrices

__all__ = ["PeerPrices"]
