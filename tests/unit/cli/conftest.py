"""The fixtures of commands, from `tests/command_line.py`."""

from tests.command_line import child as child
from tests.command_line import home as home
from tests.command_line import invoke as invoke
from tests.command_line import make_onnx as make_onnx
from tests.command_line import model as model
from tests.command_line import own as own
from tests.command_line import wide_model as wide_model
