"""What operators and networks cost in another runtime. Read `peer_prices.py`."""

from tensorwright.peers.prices.peer_prices import PeerPrices

__all__ = ["PeerPrices"]
