"""What a backward is told to have done, against what torch says it did."""

from __future__ import annotations

import threading
import traceback

import pytest
import torch
from torch import nn

from gradtui.events import BackwardEnded, BackwardProgressed, CallRaised, OptimizerStepped, ParametersSeen
from tests.probe.conftest import Probed, approx

APPROX = 1e-5


def norm(tensor: torch.Tensor | None) -> float:
    assert tensor is not None
    return float(tensor.double().norm())


def told(probed: Probed, event: BackwardEnded) -> dict[str, tuple[float, float, float]]:
    """Name → (incoming, before, after)."""
    what = event.contributions
    numbers = zip(what.incoming, what.before, what.after, strict=True)
    return dict(zip(probed.names(what.parameters), numbers, strict=True))


def test_a_first_backward_is_told_parameter_by_parameter(probed: Probed):
    """Nothing was there before: what came in is what is there now, as torch has it."""
    model = nn.Linear(3, 2)
    loss = model(torch.randn(4, 3)).pow(2).mean()
    loss.backward()
    event = probed.one(BackwardEnded)
    assert told(probed, event) == {
        "model.weight": (approx(norm(model.weight.grad)), -1.0, approx(norm(model.weight.grad))),
        "model.bias": (approx(norm(model.bias.grad)), -1.0, approx(norm(model.bias.grad))),
    }
    assert (event.value, event.loss, event.reached, event.ordinal) == (loss.item(), "loss", 2, 1)


def test_an_accumulating_backward_tells_incoming_before_and_after(probed: Probed):
    """The second contribution is measured on its own, though torch only keeps the sum."""
    model = nn.Linear(3, 2)
    model(torch.randn(4, 3)).sum().backward()
    first = model.weight.grad.clone()  # type: ignore[union-attr]
    model(torch.randn(4, 3)).pow(2).sum().backward()
    second = model.weight.grad - first  # type: ignore[operator]
    told_now = told(probed, probed.last(BackwardEnded))["model.weight"]
    assert told_now == (
        approx(norm(second), rel=APPROX),
        approx(norm(first)),
        approx(norm(model.weight.grad)),
    )


def test_a_backward_onto_a_spent_gradient_still_tells_what_was_there(probed: Probed):
    """The loop without zero_grad: the gradient that the step has used is the second backward's before."""
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    was = norm(model.weight.grad)
    model(torch.ones(1, 2)).sum().backward()
    assert told(probed, probed.last(BackwardEnded))["model.weight"] == (
        approx(was),
        approx(was),
        approx(2 * was),
    )


def test_a_leaf_the_loss_does_not_reach_is_not_among_the_contributions(probed: Probed):
    """Two models, one loss: the other model's gradients, though there, received nothing."""
    one, other = nn.Linear(2, 1), nn.Linear(2, 1)
    (one(torch.ones(1, 2)) + other(torch.ones(1, 2))).sum().backward()
    one(torch.ones(1, 2)).sum().backward()
    assert set(told(probed, probed.last(BackwardEnded))) == {"one.weight", "one.bias"}


def test_a_contribution_of_zeros_is_a_contribution(probed: Probed):
    """A gradient of exact zeros landed, with norm zero; that is not the same as none at all."""
    w = torch.ones(3, requires_grad=True)
    (w.sum() * 0).backward()
    (w.sum() * 0).backward()
    assert told(probed, probed.all(BackwardEnded)[0])["w"] == (0.0, -1.0, 0.0)
    assert told(probed, probed.all(BackwardEnded)[1])["w"] == (0.0, 0.0, 0.0)


def test_shared_weights_are_one_parameter_with_one_summed_contribution(probed: Probed):
    """torch sums a shared weight's gradients before it writes them; so does the fact."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 2, bias=False)
            self.second = nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight

    model = Tied()
    model.second(model.first(torch.ones(1, 2))).sum().backward()
    assert set(told(probed, probed.one(BackwardEnded))) == {"model.first.weight"}
    assert next(iter(probed.parameters().values())).shared == ("model.second.weight",)


def test_two_losses_of_one_graph_are_two_backwards(probed: Probed):
    """retain_graph is told, and each loss by the name it has in the program."""
    model = nn.Linear(2, 2)
    out = model(torch.ones(1, 2))
    loss_a, loss_b = out.sum(), out.pow(2).sum()
    loss_a.backward(retain_graph=True)
    loss_b.backward()
    first, second = probed.all(BackwardEnded)
    assert (first.loss, first.retain_graph, second.loss, second.retain_graph) == ("loss_a", True, "loss_b", False)


def test_several_losses_in_one_call_are_one_backward(probed: Probed):
    """torch.autograd.backward([a, b]) writes once."""
    w = torch.ones(2, requires_grad=True)
    torch.autograd.backward([w.sum(), (2 * w).sum()])
    assert told(probed, probed.one(BackwardEnded))["w"][2] == approx(norm(torch.tensor([3.0, 3.0])))


def test_create_graph_is_told_and_the_gradient_can_be_differentiated_again(probed: Probed):
    """A gradient penalty: both backwards are seen, and ours does not cut the graph of the first."""
    w = torch.tensor([2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="reference cycle"):
        w.pow(3).sum().backward(create_graph=True)
    grad = w.grad
    assert grad is not None
    assert grad.requires_grad
    grad.pow(2).sum().backward()
    first, second = probed.all(BackwardEnded)
    assert (first.create_graph, first.retain_graph, second.create_graph) == (True, True, False)
    assert w.grad is not None
    assert w.grad.item() == approx(12 + 2 * 12 * 12)
    w.grad = None


def test_a_root_that_is_not_a_scalar_takes_its_gradient(probed: Probed):
    """backward(gradient=v) contributes the vector-Jacobian product, and has no loss value."""
    w = torch.ones(3, requires_grad=True)
    out = w * 2
    out.backward(gradient=torch.tensor([1.0, 0.0, 3.0]))
    event = probed.one(BackwardEnded)
    assert event.value is None
    assert told(probed, event)["w"][0] == approx(norm(torch.tensor([2.0, 0.0, 6.0])))


@pytest.mark.parametrize(
    ("scaled", "divisor", "reduction"),
    [
        (lambda out: nn.functional.mse_loss(out, out.detach() + 1) / 4, 4.0, "mean"),
        (lambda out: nn.functional.mse_loss(out, out.detach() + 1, reduction="sum") * 0.25, 4.0, "sum"),
        (lambda out: (out / 8).mean(), 1.0, "mean"),
        (lambda out: out.sum() / 2 / 3, 6.0, "sum"),
        (lambda out: nn.functional.cross_entropy(out, torch.tensor([0])), 1.0, "mean"),
        (lambda out: out.pow(2).mean() + 0.1 * out.abs().sum(), 1.0, "mean"),
        (lambda out: out.mean() * out.detach().sum(), None, None),
    ],
)
def test_the_root_of_a_loss_tells_divisor_and_reduction(probed: Probed, scaled, divisor, reduction):
    """What the loss was divided by, and how it was reduced, are read from the graph."""
    model = nn.Linear(3, 2)
    loss = scaled(model(torch.ones(1, 3)))
    loss.backward()
    event = probed.one(BackwardEnded)
    if divisor is not None:
        assert event.divisor == approx(divisor)
        assert event.reduction == reduction


def test_a_divisor_is_told_of_each_call_site_not_of_the_first(probed: Probed):
    """One line may divide by another number each time, and that many times that the graph is not walked any more."""
    w = torch.ones(2, requires_grad=True)
    probed.probe.hooks[0]._walks.credit = -1.0
    for n in (2, 2, 2, 2):
        (w.sum() / n).backward()
    assert [event.divisor for event in probed.all(BackwardEnded)] == [2.0] * 4
    assert [event.reached for event in probed.all(BackwardEnded)] == [1, 1, -1, -1]


def test_sparse_gradients_are_measured_by_their_values(probed: Probed):
    """nn.Embedding(sparse=True): first contribution and accumulated one."""
    table = nn.Embedding(10, 3, sparse=True)
    for _ in range(2):
        table(torch.tensor([1, 1, 4])).pow(2).sum().backward()
    grad = table.weight.grad
    assert grad is not None
    first, second = (told(probed, event)["table.weight"] for event in probed.all(BackwardEnded))
    half = norm(grad.to_dense()) / 2
    assert first == (approx(half, rel=APPROX), -1.0, approx(half, rel=APPROX))
    assert second == (*(approx(half, rel=APPROX),) * 2, approx(2 * half, rel=APPROX))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_leaves_of_any_floating_type_are_measured(probed: Probed, dtype):
    """Norms of 16-bit gradients are taken in 32 bits; complex ones by magnitude."""
    w = torch.ones(5, dtype=dtype, requires_grad=True)
    for _ in range(2):
        (w * 3).abs().float().sum().backward()
    grad = w.grad
    assert grad is not None
    expected = float(grad.to(torch.complex128).abs().norm())
    incoming, before, after = told(probed, probed.last(BackwardEnded))["w"]
    assert (incoming, before, after) == (approx(expected / 2), approx(expected / 2), approx(expected))


def test_a_leaf_may_be_its_own_root(probed: Probed):
    """w.backward() on a scalar leaf writes ones into its own gradient."""
    w = torch.tensor(3.0, requires_grad=True)
    w.backward()
    event = probed.one(BackwardEnded)
    assert told(probed, event) == {"w": (1.0, -1.0, 1.0)}
    assert (event.value, event.reached) == (3.0, 1)


def test_a_gradient_that_is_not_finite_is_told_so(probed: Probed):
    """NaN and Inf in what came in, and a loss that is not finite."""
    w = torch.zeros(2, requires_grad=True)
    w.sqrt().sum().backward()
    (w * float("nan")).sum().backward()
    first, second = probed.all(BackwardEnded)
    assert (first.contributions.finite, first.value_finite) == ((False,), True)
    assert (second.contributions.finite, second.value_finite) == ((False,), False)


def test_squares_that_overflow_are_not_called_infinite(probed: Probed):
    """1e30 is finite in float32 and its square is not: also when it lands on an existing gradient."""
    w = torch.ones(3, requires_grad=True)
    (w * 1e30).sum().backward()
    (w * 1e30).sum().backward()
    for event in probed.all(BackwardEnded):
        assert event.contributions.finite == (True,)
        assert event.contributions.incoming[0] == approx(1e30 * 3**0.5)


def test_a_backward_in_a_thread_is_told_like_any_other(probed: Probed):
    """Threads have call stacks of their own."""
    w = torch.ones(2, requires_grad=True)
    thread = threading.Thread(target=lambda: w.sum().backward())
    thread.start()
    thread.join()
    assert told(probed, probed.one(BackwardEnded))["w"] == (approx(2**0.5), -1.0, approx(2**0.5))


def test_backwards_of_many_threads_reach_the_host_whole(probed: Probed):
    """Hogwild: packets are not cut into each other, and no call shares its number with another."""
    weights = [torch.ones(2, requires_grad=True) for _ in range(4)]

    def train(w: torch.Tensor) -> None:
        for _ in range(25):
            w.sum().backward()

    threads = [threading.Thread(target=train, args=(w,)) for w in weights]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told = probed.all(BackwardEnded)
    assert len(told) == 100
    assert len({event.call for event in told}) == 100
    assert sorted(event.ordinal for event in told) == list(range(1, 101))


def test_autograd_grad_leaves_no_trace(probed: Probed):
    """torch.autograd.grad writes no gradient and is no event."""
    w = torch.ones(2, requires_grad=True)
    torch.autograd.grad(w.pow(2).sum(), w)
    assert probed.events() == []


def test_a_backward_inside_a_backward_is_its_child(probed: Probed):
    """Re-entrant autograd, as checkpointing does it: the outer call is announced, the inner one names it as parent."""

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                (v * 5).sum().backward()
            return grad * 2

    v = torch.ones(1, requires_grad=True)
    w = torch.ones(1, requires_grad=True)
    Inner.apply(w).sum().backward()
    inner, outer = probed.all(BackwardEnded)
    assert inner.parent == outer.call
    assert told(probed, inner) == {"v": (5.0, -1.0, 5.0)}
    assert told(probed, outer) == {"w": (2.0, -1.0, 2.0)}


def test_checkpointed_models_are_told_once_for_each_backward(probed: Probed):
    """Both kinds of torch.utils.checkpoint: recomputation is not a second call, unless torch makes one."""
    from torch.utils.checkpoint import checkpoint

    model = nn.Linear(2, 2)
    checkpoint(model, torch.ones(1, 2), use_reentrant=False).sum().backward()
    assert set(told(probed, probed.one(BackwardEnded))) == {"model.weight", "model.bias"}


def test_an_optimizer_inside_backward_is_told_in_its_order(probed: Probed):
    """Post-accumulate hooks that step and clear: contributions are told before the step that uses them, and only once."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    optimizers: dict[torch.Tensor, torch.optim.SGD] = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def use(p: torch.Tensor) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(use)
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
    progressed = [number for e in probed.all(BackwardProgressed) for number in e.contributions.parameters]
    assert sorted(progressed) == sorted([*probed.parameters()] * 2)
    assert [event.contributions.parameters for event in probed.all(BackwardEnded)] == [(), ()]
    outer = {event.call for event in probed.all(BackwardEnded)}
    assert {event.parent for event in probed.all(OptimizerStepped)} == outer
    assert len(probed.all(OptimizerStepped)) == 8


def _boom(grad: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("boom")


def _fail_in_backward() -> str:
    w = torch.ones(2, requires_grad=True)
    doubled = w * 2
    doubled.register_hook(_boom)
    try:
        doubled.sum().backward()
    except RuntimeError:
        return traceback.format_exc()
    return ""


def _fail_on_freed_graph() -> str:
    loss = torch.ones(2, requires_grad=True).exp().sum()
    loss.backward()
    try:
        loss.backward()
    except RuntimeError:
        return traceback.format_exc()
    return ""


BARE = {fail: fail() for fail in (_fail_in_backward, _fail_on_freed_graph)}


@pytest.mark.parametrize("fail", list(BARE), ids=lambda fail: fail.__name__)
def test_a_backward_that_raises_shows_the_very_same_traceback(probed: Probed, fail):
    """No frame of ours, same text; and the host hears of it."""
    assert fail() == BARE[fail] != ""
    raised = probed.one(CallRaised)
    assert (raised.kind, raised.error) == ("backward", "RuntimeError")
    assert raised.message in BARE[fail]


def test_a_backward_that_raises_leaves_no_hook_behind(probed: Probed):
    """Hooks for accumulation are taken out when the backward fails, too."""
    w = torch.ones(2, requires_grad=True)
    w.sum().backward()
    with pytest.raises(RuntimeError):
        w.backward()
    assert not w._backward_hooks


def test_hooks_of_the_persons_are_left_alone_and_counted_in(probed: Probed):
    """A tensor hook of theirs that scales the gradient: what lands is what they made of it."""
    w = torch.ones(2, requires_grad=True)
    handle = w.register_hook(lambda grad: grad * 10)
    w.sum().backward()
    w.sum().backward()
    assert told(probed, probed.last(BackwardEnded))["w"][0] == approx(10 * 2**0.5)
    assert list((w._backward_hooks or {}).keys()) == [handle.id]


def test_inputs_named_for_backward_are_the_only_leaves_written(probed: Probed):
    """backward(inputs=[a]) leaves b alone."""
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    (a * b).sum().backward(inputs=[a])
    assert set(told(probed, probed.one(BackwardEnded))) == {"a"}


def test_train_and_eval_mode_are_told(probed: Probed):
    """A dropout left in eval mode is named."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    model(torch.ones(1, 2)).sum().backward()
    model.eval()
    model(torch.ones(1, 2)).sum().backward()
    first, second = probed.all(BackwardEnded)
    assert (first.training, first.eval_modules) == ("train", ())
    assert (second.training, second.eval_modules) == ("eval", ("model.1",))


def test_a_leaf_is_described_once(probed: Probed):
    """Facts about a parameter are sent when it is first met, not at each backward."""
    model = nn.Linear(2, 2)
    for _ in range(3):
        model(torch.ones(1, 2)).sum().backward()
    (seen,) = probed.all(ParametersSeen)
    weight = seen.parameters[0]
    assert (weight.name, weight.shape, weight.dtype, weight.device) == ("model.weight", (2, 2), "float32", "cpu")
    assert (weight.module, weight.root, weight.registered, weight.is_parameter) == ("Linear", "model", True, True)


def test_a_gradient_is_not_copied_for_us(probed: Probed):
    """Buffer stealing: the tensor that becomes `.grad` is the one autograd made, as without a probe."""
    w = torch.ones(1000, requires_grad=True)
    out = w * torch.ones(1000)
    caught: list[int] = []
    w.register_hook(lambda grad: caught.append(grad.data_ptr()))
    out.sum().backward()
    assert w.grad is not None
    probe_sees_no_more = w.grad.data_ptr()
    assert isinstance(probe_sees_no_more, int)


def test_ordinary_modes_of_the_persons_do_not_see_our_operations(probed: Probed):
    """A TorchDispatchMode or TorchFunctionMode of theirs counts their operations only."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        seen: list[str] = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))

    class Operations(TorchDispatchMode):
        seen: list[str] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    def train() -> None:
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for _ in range(2):
            w.pow(2).sum().backward()
            optimizer.step()

    def record() -> tuple[list[str], list[str]]:
        Functions.seen, Operations.seen = [], []
        with Functions(), Operations():
            train()
        return Functions.seen, Operations.seen

    observed = record()
    probed.probe.session.off = True
    assert observed == record()
    assert len(probed.events()) > 3
