"""Parameters and optimizers are named as the person knows them."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from gradtui.events import ParametersSeen
from tests.probe.conftest import Probed

X = torch.ones(1, 2)


def test_plain_tensors_have_the_names_of_their_variables(probed: Probed):
    """No module at all."""
    W, b = torch.ones(2, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    (X @ W + b).sum().backward()
    assert sorted(probed.names()) == ["W", "b"]
    assert not any(info.registered or info.is_parameter for info in probed.parameters().values())


def test_two_models_are_told_apart(probed: Probed):
    """A GAN: same class, same paths, different roots."""
    generator, critic = nn.Linear(2, 2), nn.Linear(2, 1)
    critic(generator(X)).sum().backward()
    assert sorted(probed.names()) == ["critic.bias", "critic.weight", "generator.bias", "generator.weight"]


class Trainer:
    """Keeps its model as people do."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self) -> None:
        self.model(X).sum().backward()
        self.optimizer.step()


def test_attributes_of_self_go_without_self(probed: Probed):
    """self.model inside a method."""
    Trainer().fit()
    assert set(probed.names()) == {"model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias"}
    assert [info.name for info in probed.optimizers().values()] == ["optimizer"]


def test_objects_inside_objects_are_named_by_their_path(probed: Probed):
    """An agent that holds a trainer that holds the model."""

    class Brain:
        def __init__(self) -> None:
            self.model = nn.Linear(2, 1)

    class Agent:
        def __init__(self) -> None:
            self.brain = Brain()

    agent = Agent()
    agent.brain.model(X).sum().backward()
    assert set(probed.names()) == {"agent.brain.model.weight", "agent.brain.model.bias"}


def test_a_module_that_trains_itself_has_short_names(probed: Probed):
    """self is the module: its parameters go by their own path."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 1)

        def fit(self) -> None:
            self.layer(X).sum().backward()

    Net().fit()
    assert set(probed.names()) == {"layer.weight", "layer.bias"}


def test_shared_weights_keep_their_other_names(probed: Probed):
    """Tied embeddings."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(3, 2)
            self.head = nn.Linear(2, 3, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    model = Tied()
    model(torch.tensor([1])).sum().backward()
    (info,) = probed.parameters().values()
    assert (info.name, info.shared) == ("model.embed.weight", ("model.head.weight",))


def test_a_wrapped_model_keeps_the_name_it_had(probed: Probed):
    """DataParallel around a model that still has its variable."""
    model = nn.Linear(2, 1)
    wrapped = nn.DataParallel(model)
    wrapped(X).sum().backward()
    assert set(probed.names()) == {"model.weight", "model.bias"}


def test_a_model_known_only_by_its_wrapper_is_named_by_it(probed: Probed):
    """model = DataParallel(model): the wrapper's `module.` is left out."""
    model = nn.DataParallel(nn.Linear(2, 1))
    model(X).sum().backward()
    assert set(probed.names()) == {"model.weight", "model.bias"}


def test_a_compiled_wrapper_adds_nothing_to_the_path(probed: Probed):
    """torch.compile(model): `_orig_mod.` is left out."""
    model: Any = torch.compile(nn.Linear(2, 1), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.step()
    assert set(probed.names()) == {"model.weight", "model.bias"}


def test_layers_in_a_plain_list_are_named_and_known_to_be_unregistered(probed: Probed):
    """The mistake that nn.ModuleList is for."""

    class Forgetful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(2, 2), nn.Linear(2, 1)]

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    model = Forgetful()
    model(X).sum().backward()
    infos = probed.parameters().values()
    assert {info.name for info in infos} == {f"model.layers[{n}].{kind}" for n in (0, 1) for kind in ("weight", "bias")}
    assert not any(info.registered for info in infos)


def test_a_parameter_that_is_made_anew_is_a_new_one(probed: Probed):
    """model.weight = nn.Parameter(...): same name, another id; the optimizer still owns the old one."""
    model = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(X).sum().backward()
    model.weight = nn.Parameter(torch.ones(1, 2))
    model(X).sum().backward()
    assert probed.names() == ["model.weight", "model.weight"]
    assert list(probed.optimizers().values())[-1].parameters == (1,)
    assert optimizer is not None


def test_tensors_in_a_list_are_named_by_their_index(probed: Probed):
    """params[0], and values of a dict by their key."""
    params = [torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)]
    bag = {"scale": torch.ones(2, requires_grad=True)}
    sum((p.sum() for p in params), bag["scale"].sum()).backward()
    assert sorted(probed.names()) == ["bag['scale']", "params[0]", "params[1]"]


def test_parameters_of_functional_code_are_named_by_their_dict(probed: Probed):
    """torch.func.functional_call with a dict of leaves."""
    model = nn.Linear(2, 1)
    weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    torch.func.functional_call(model, weights, (X,)).sum().backward()
    assert sorted(probed.names()) == ["weights['bias']", "weights['weight']"]


def test_a_leaf_that_nobody_holds_is_described_by_its_shape(probed: Probed):
    """An anonymous leaf inside an expression."""
    loss = (torch.ones(2, 3, requires_grad=True) * 2).sum()
    loss.backward()
    assert probed.names() == ["<leaf 2×3>"]


def test_a_model_behind_a_function_is_found_where_it_lives(probed: Probed):
    """A helper that only gets the loss: the caller's variable names the model."""

    def take(loss: torch.Tensor) -> None:
        loss.backward()

    network = nn.Linear(2, 1)
    take(network(X).sum())
    assert set(probed.names()) == {"network.weight", "network.bias"}


def test_inputs_under_attack_are_no_parameters(probed: Probed):
    """requires_grad_() on a batch."""
    model = nn.Linear(2, 1)
    image = torch.ones(1, 2).requires_grad_()
    model(image).sum().backward()
    info = next(info for info in probed.parameters().values() if info.name == "image")
    assert (info.is_parameter, info.registered) == (False, False)


def test_parameters_that_come_and_go_do_not_pile_up(probed: Probed):
    """A fresh input each step: forgotten once it is gone."""
    for _ in range(50):
        x = torch.ones(2, requires_grad=True)
        x.sum().backward()
    assert len(probed.all(ParametersSeen)) == 50
    assert len(probed.probe.registry.tracked) <= 2


def test_looking_at_a_function_keeps_nothing_in_it_alive(probed: Probed):
    """Python before 3.13 would keep a snapshot of the variables, tensors and graphs included, until the function returns."""
    W = torch.ones(2, 1, requires_grad=True)
    first = None
    for _ in range(2):
        batch = torch.ones(1, 2)
        (batch @ W).sum().backward()
        first = first or weakref.ref(batch)
        del batch
    assert first is not None
    assert first() is None
    assert probed.names() == ["W"]


def test_what_locals_gave_the_person_stays_as_it_was(probed: Probed):
    """`config = locals()` in the first line of a function is a common way to keep its arguments."""

    def train(lr: float = 0.1) -> list[str]:
        config = locals()
        W = torch.ones(2, 1, requires_grad=True)
        (X @ W).sum().backward()
        return list(config)

    assert train() == ["lr"]
