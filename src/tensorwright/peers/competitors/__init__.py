"""The runtimes in which answers are checked: a module each, with a class that fulfils `Peer`."""
