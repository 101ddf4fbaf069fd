"""torch.compile(module, backend="tensorwright")."""

from __future__ import annotations

import copy
import threading
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.draws import some_of

from tensorwright import pipeline
from tensorwright.base import override

torch = pytest.importorskip("torch")
two_tensor = pytest.importorskip("torch.testing._internal.two_tensor")

from tests.unit.integrations.pytorch.modules import SMALL, Cnn, Transformer, alike  # noqa: E402

from tensorwright.integrations.pytorch import compile_backend  # noqa: E402
from tensorwright.integrations.pytorch.compile_backend import (  # noqa: E402
    Options,
    fallbacks,
    tensorwright_backend,
)

nn = torch.nn


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    """Each test begins with nothing compiled, and asks for no gradients."""
    torch._dynamo.reset()
    compile_backend.reset()
    torch.manual_seed(0)
    with torch.no_grad(), override(default_schedule="rule"):  # which chooses faster
        yield


class Counter:
    """The backend, and how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        return tensorwright_backend(*arguments, **options)


def compiled(function: Any, **more: Any) -> Any:
    return torch.compile(function, backend=tensorwright_backend, **more)


def test_networks_are_equal_and_compiled_whole() -> None:
    pairs = ((Cnn(), torch.randn(2, 3, 16, 16)), (Transformer(), torch.randint(0, 11, (2, 7))))
    for module, x in pairs:
        assert alike(compiled(module.eval(), fullgraph=True)(x), module(x))
    assert fallbacks() == {}


@pytest.mark.parametrize("name", SMALL)
def test_small_networks_are_compiled_whole(name: str) -> None:
    kind, inputs = SMALL[name]
    module = kind().eval()
    assert alike(compiled(module, fullgraph=True)(*inputs), module(*inputs))
    assert fallbacks() == {}


def test_sizes_that_change_are_open_sizes() -> None:
    backend, module = Counter(), Transformer().eval()
    call = torch.compile(module, backend=backend)
    for batch, length in ((2, 7), (3, 9), *((n, n + 3) for n in range(2, 9))):
        ids = torch.randint(0, 11, (batch, length))
        assert alike(call(ids), module(ids))
    assert backend.calls == 2


class Head(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.fc(x)) * 2


def test_weights_are_those_of_the_call() -> None:
    """Two modules share the code; weights are changed in place, loaded, and put in their places."""
    first, second = Head().eval(), Head().eval()
    one, other = compiled(first), compiled(second)
    x = torch.randn(2, 4)
    for _ in range(2):
        assert alike(one(x), first(x))
        assert alike(other(x), second(x))
    for step in range(5):
        first.fc.weight.add_(0.5 + step)
        assert alike(one(x), first(x))
    first.load_state_dict(second.state_dict())
    assert alike(one(x), second(x))
    first.fc.weight.data = torch.zeros(3, 4)
    assert alike(one(x), first(x))

    def of_both(module: Any, x: Any) -> Any:
        return module(x)

    call = compiled(of_both)
    assert alike(call(first, x), first(x))
    assert alike(call(second, x), second(x))


def test_inputs_may_lie_in_memory_as_they_like() -> None:
    def rows(x: Any) -> Any:
        return torch.relu(x * 2).sum(1)

    call, x = compiled(rows, dynamic=True), torch.randn(4, 8, 8, 8)
    others = (x.to(memory_format=torch.channels_last), x[::2], x.transpose(2, 3), x[:, :, 1:])
    for each in (x, *others):
        assert alike(call(each), rows(each))


def test_results_share_elements_with_what_they_shared_them_with() -> None:
    def views(x: Any) -> Any:
        y = x * 2
        return x, x.t(), y, y[0], y.view(-1), x.shape[0] + 1

    x = torch.randn(3, 4)
    got = compiled(views)(x)
    assert alike(got, views(x))
    assert got[0] is x
    assert got[1].data_ptr() == x.data_ptr()
    assert got[3].data_ptr() == got[2].data_ptr() == got[4].data_ptr()


def test_inputs_are_written_into() -> None:
    def step(x: Any, cache: Any) -> Any:
        cache[:, 1].copy_(x)
        x.mul_(2)
        return (cache * 3).sum(1)

    x, cache = torch.randn(3), torch.randn(3, 2)
    want = [x.clone(), cache.clone()]
    result = step(*want)
    assert alike(compiled(step)(x, cache), result)
    assert alike([x, cache], want)

    def doubled(x: Any) -> Any:
        return x.mul_(2), x.sum()

    got = compiled(doubled)(x)
    assert got[0].data_ptr() == x.data_ptr()
    assert alike(x, doubled(want[0])[0])


SHARING: dict[str, Any] = {
    "shifted": lambda base: (base[:3], base[1:]),
    "the same twice": lambda base: (base[:3],) * 2,
    "two views of the same": lambda base: (base[:3], base[:3]),
    "transposed": lambda base: (base[:3], base[:3].t()),
    "one row for all": lambda base: (base[:3], base[1:2].expand(3, 3)),
    "other halves": lambda base: (base[::2], base[1::2]),
    "nothing": lambda base: (base[:2], base[2:]),
}


@pytest.mark.parametrize("sharing", some_of(SHARING, 3, "sharing"))
@pytest.mark.drawn
def test_a_write_is_seen_through_inputs_that_share_memory(
    sharing: str, caplog: pytest.LogCaptureFixture
) -> None:
    def first(x: Any, y: Any) -> Any:
        x.mul_(2)
        return x + y

    def row(x: Any, y: Any) -> Any:
        x[0].add_(1)
        return y * 3, x.sum()

    def both(x: Any, y: Any) -> Any:
        z = y.t()
        x.relu_()
        return z + 1, x

    def inputs(is_shared: bool) -> Any:
        views = SHARING[sharing](torch.arange(12.0).view(4, 3) - 5)
        return views if is_shared else [each.clone() for each in views]

    for function in (first, row, both):
        call = compiled(function)
        for is_shared in (False, True, False, True):
            wanted, given = inputs(is_shared), inputs(is_shared)
            assert alike(call(*given), function(*wanted))
            assert alike(given, wanted)
    told = [each.message for each in caplog.records if "share memory" in each.message]
    assert len(told) == (sharing not in ("nothing", "the same twice"))


def test_positions_of_extremes_among_nan_and_ties() -> None:
    nan, inf = float("nan"), float("inf")
    rows = [[1, nan, 3, -inf], [nan, 2, nan, 1], [2, 1, 2, 1], [nan] * 4, [-inf, nan, inf, inf]]
    x = torch.tensor(rows)

    def searches(x: Any) -> Any:
        along = [(x.argmax(at), x.argmin(at), *x.max(at), *x.min(at)) for at in (0, 1)]
        return *along[0], *along[1], x.argmax(), x.argmin(), *x.aminmax(dim=1), *x.cummax(1)

    for each in (x, x.T.contiguous(), x[2:3], x.double(), x.repeat(1, 33)):
        assert alike(compiled(searches)(each), searches(each))


def test_scalars_and_graphs_without_tensors() -> None:
    def scaled(x: Any, k: Any) -> Any:
        return x * k + 1, (x > 0) == k

    call, x = compiled(scaled), torch.randn(3)
    for k in (2, 3, 4, 2.5, 3.5, True, False):
        assert alike(call(x, k), scaled(x, k))
    assert compiled(lambda x: x.shape[0] * 2)(x) == 6
    assert alike(compiled(lambda: torch.arange(3) + 1)(), torch.arange(3) + 1)


def test_what_we_do_not_have_runs_in_pytorch(caplog: pytest.LogCaptureFixture) -> None:
    def mixed(x: Any) -> Any:
        y = torch.special.bessel_j0(x @ x)
        return torch.relu(y @ x), y

    x = torch.randn(3, 3)
    assert alike(compiled(mixed)(x), mixed(x))
    assert fallbacks() == {"aten.special_bessel_j0": "we have no operator for it"}
    assert "special_bessel_j0" in caplog.text
    for more in ({"fullgraph": True}, {"options": {"strict": True}}):
        torch._dynamo.reset()  # PyTorch then calls `reset` of each backend
        compile_backend.reset()
        assert fallbacks() == {}
        with pytest.raises(Exception, match=r"PyTorch would have to run aten\.special_bessel_j0"):
            compiled(mixed, **more)(x)


def test_tensors_that_are_no_plain_ones_run_in_pytorch(caplog: pytest.LogCaptureFixture) -> None:
    module = Head().eval()
    x = two_tensor.TwoTensor(torch.randn(2, 4), torch.randn(2, 4))
    got = compiled(module)(x)
    assert alike(got.a, module(x.a))
    assert alike(got.b, module(x.b))
    assert compiled(lambda x: x + 1)(torch.randn(2, device="meta")).device.type == "meta"
    assert "PyTorch runs an input of the class TwoTensor: it is not a plain tensor" in caplog.text
    assert "PyTorch runs an input on meta: it is not in the memory of the processor" in caplog.text
    with pytest.raises(Exception, match="an input of the class TwoTensor"):
        compiled(Cnn().eval(), options={"strict": True})(
            two_tensor.TwoTensor(torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16))
        )


def trained(module: Any, call: Any, inputs: list[Any]) -> list[Any]:
    """Losses, gradients and parameters of some steps."""
    descent, seen = torch.optim.SGD(module.parameters(), 0.1), []
    for x in inputs:
        loss = call(x).square().mean()
        loss.backward()
        seen += [loss.detach(), *(each.grad.clone() for each in module.parameters())]
        descent.step()
        descent.zero_grad()
    return [*seen, *(each.detach().clone() for each in (*module.parameters(), *module.buffers()))]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_steps_of_training_are_equal(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    """The forward program is compiled, PyTorch's kernels compute the gradients; one warning."""
    convolutions = nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(54, 4),
    )
    attention = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    cases: list[tuple[Any, list[Any]]] = [
        (convolutions, [torch.randn(n, 3, 8, 8) for n in (2, 2, 3)]),
    ]
    if mode == "train":
        cases.append((attention, [torch.randn(n, 7, 16) for n in (2, 3, 4)]))
    for module, inputs in cases:
        getattr(module, mode)()
        twin = copy.deepcopy(module)
        with torch.enable_grad():
            got = trained(module, compiled(module, fullgraph=True), inputs)
            want = trained(twin, twin, inputs)
        assert all(alike(*each, 1e-5) for each in zip(got, want, strict=True))
    told = [each.message for each in caplog.records if "compute gradients" in each.message]
    assert len(told) == 1
    assert "PyTorch's own kernels" in told[0]
    assert not {"aten.addmm", "aten.native_layer_norm", "aten.convolution"} & fallbacks().keys()
    with torch.enable_grad(), pytest.raises(Exception, match="own kernels compute gradients"):
        compiled(Head(), options={"strict": True})(torch.randn(2, 4))


def test_an_evaluated_module_needs_no_no_grad() -> None:
    module, x = Transformer().eval(), torch.randint(0, 11, (2, 7))
    with torch.enable_grad():
        got = compiled(module)(x)
        assert got.requires_grad
        assert alike(got.detach(), module(x).detach())


def test_transforms_are_carried_out() -> None:
    """Masks of language models are made by vmap of a function of two positions."""

    def masked(x: Any) -> Any:
        count = x.shape[-1]
        at = torch.arange(count)
        over = torch.vmap(lambda row, column: (row >= column) & (column > row - 3), (None, 0))
        mask = torch.vmap(over, (0, None))(at, at)
        y = torch.vmap(lambda part: nn.functional.layer_norm(part, (count,)) @ part.T)(x)
        return y.masked_fill(~mask, -float("inf")).softmax(-1)

    def slope(x: Any) -> Any:
        return torch.func.grad(lambda part: (part.sin() * part).sum())(x) + x

    for function in (masked, slope):
        call = compiled(function, fullgraph=True)
        for shape in ((2, 4, 4), (3, 5, 5), (2, 6, 6)):
            x = torch.randn(shape)
            assert alike(call(x), function(x))


def test_inference_mode_and_training_mode() -> None:
    module, x = Cnn().eval(), torch.randn(2, 3, 16, 16)
    with torch.inference_mode():
        assert alike(compiled(module)(x), module(x))
    training = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    twin = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    twin.load_state_dict(training.state_dict())
    x = torch.randn(5, 4)
    assert alike(compiled(training)(x), twin(x))
    assert alike(training[1].running_mean, twin[1].running_mean)


def test_two_threads_call_at_once() -> None:
    module = Transformer().eval()
    call = compiled(module)
    inputs = [torch.randint(0, 11, (2, 7)) for _ in range(4)]
    wanted = [module(each) for each in inputs]
    call(inputs[0])
    wrong: list[int] = []

    def run(at: int) -> None:
        with torch.no_grad():
            wrong.extend(at for _ in range(20) if not alike(call(inputs[at]), wanted[at]))

    threads = [threading.Thread(target=run, args=(at,)) for at in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_options() -> None:
    assert Options.read("max-autotune", None).minutes == 5
    assert Options.read("max-autotune", {"minutes": 1}).minutes == 1
    for more, reason in (
        ({"options": {"minutse": 1}}, "option 'minutse': there is no such option.*\n.*minutes"),
        ({"options": {"nonsense": 1}}, "one of minutes, freeze, strict, target, threads, records"),
        ({"options": {"minutes": -1}}, "option 'minutes': -1 is not a number of minutes"),
        ({"options": {"minutes": True}}, "option 'minutes': True is not a number of minutes"),
        ({"options": {"freeze": "yes"}}, "option 'freeze': 'yes' is not True or False"),
        ({"mode": "fastest"}, "mode 'fastest': there is no such mode"),
    ):
        with pytest.raises(Exception, match=reason):
            tensorwright_backend(None, (), **more)
    module, x = Head().eval(), torch.randn(2, 4)
    call = compiled(module, options={"freeze": True, "threads": 1})
    before = module(x)
    assert alike(call(x), before)
    module.fc.weight.add_(1)
    assert alike(call(x), before)  # as promised, nothing is compared


def test_a_mode_without_effect_says_so(caplog: pytest.LogCaptureFixture) -> None:
    module, x = Head().eval(), torch.randn(2, 4)
    assert alike(
        torch.compile(module, backend="tensorwright", mode="reduce-overhead")(x), module(x)
    )
    assert "mode 'reduce-overhead' changes nothing" in caplog.text


def test_what_was_compiled_before_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a later process: only weights that change are compiled for."""
    monkeypatch.setenv("TENSORWRIGHT_EXECUTABLE_CACHE", "64")
    module, x = Head().eval(), torch.randn(2, 4)
    assert alike(compiled(module)(x), module(x))
    torch._dynamo.reset()
    graphs = []
    compile_graph = pipeline.compile
    monkeypatch.setattr(
        pipeline,
        "compile",
        lambda graph, how: graphs.append(graph) or compile_graph(graph, how),
    )
    call = compiled(module)
    assert alike(call(x), module(x))
    assert len(graphs) == 0
    module.fc.weight.add_(1)
    assert alike(call(x), module(x))
    assert len(graphs) == 1


def test_the_entry_point_names_the_backend() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())
    module, _, name = project["project"]["entry-points"]["torch_dynamo_backends"][
        "tensorwright"
    ].partition(":")
    assert getattr(import_module(module), name) is tensorwright_backend
