"""What the person calls their tensors, modules and optimizers: read from the frames that are running, at discovery only.

A parameter's name is the variable that holds its outermost module plus its path inside (`model.conv1.weight`); attributes of `self` go
without the `self.`; what is in no variable is looked for among all live modules, then in the dict that refers to it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import Any

import torch
from torch.nn import Module
from torch.nn.parameter import is_lazy

from gradtui.probe.sites import PERSON, owner_of, variables_of

_Optimizer = torch.optim.Optimizer
_Tensor = torch.Tensor
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_forward_module", "model")
_WRAPPER_CLASSES = (
    "DistributedDataParallel",
    "DataParallel",
    "OptimizedModule",
    "FullyShardedDataParallel",
    "GradSampleModule",
    "_FabricModule",
)
_VISITS = 4000
_ITEMS = 256


@dataclass(frozen=True, slots=True)
class Found:
    """Where a leaf was found."""

    name: str
    module: str = ""
    root: str = ""
    registered: bool = False
    shared: tuple[str, ...] = ()
    holder: Any = None
    """The module that holds it, or None; used at once, never kept."""


class Namespace:
    """The modules, leaf tensors and optimizers that the person's frames can name, innermost frame first."""

    def __init__(self, frame: FrameType | None) -> None:
        self.modules: dict[int, tuple[str, Module]] = {}
        self.tensors: dict[int, str] = {}
        self.optimizers: dict[int, str] = {}
        self._seen: set[int] = set()
        self._visits = 0
        scopes: list[dict[str, Any]] = []
        globals_seen: list[dict[str, Any]] = []
        while frame is not None:
            if owner_of(frame.f_code.co_filename) == PERSON:
                if frame.f_code.co_flags & CO_OPTIMIZED or frame.f_locals is not frame.f_globals:
                    scopes.append(variables_of(frame))
                if not any(frame.f_globals is known for known in globals_seen):
                    globals_seen.append(frame.f_globals)
            frame = frame.f_back
        for scope in scopes:
            for name, value in scope.items():
                self._visit(name, value, 0)
        for scope in globals_seen:
            for name, value in list(scope.items()):
                self._visit(name, value, 0)

    def _visit(self, name: str, value: Any, depth: int) -> None:
        kind = type(value)
        if kind in _ATOMS or (id(value) in self._seen and not issubclass(kind, _Tensor)):
            return
        self._visits += 1
        if self._visits > _VISITS:
            return
        if issubclass(kind, _Tensor):
            if kind in (_Tensor, torch.nn.Parameter) and value.requires_grad and value.is_leaf:
                self.tensors.setdefault(id(value), name)
            return
        if issubclass(kind, Module):
            if name == "self":
                self.modules.setdefault(id(value), ("", value))
            elif id(value) not in self.modules or not self.modules[id(value)][0]:
                self.modules[id(value)] = (name, value)
            if name != "self":
                self._seen.add(id(value))
            return
        self._seen.add(id(value))
        if issubclass(kind, _Optimizer):
            self.optimizers.setdefault(id(value), name)
            return
        if depth >= 3:
            return
        if kind in (list, tuple):
            for index, item in enumerate(value[:_ITEMS]):
                self._visit(f"{name}[{index}]", item, depth + 1)
        elif kind is dict:
            for key, item in list(value.items())[:_ITEMS]:
                if type(key) in (str, int):
                    self._visit(f"{name}[{key!r}]", item, depth + 1)
        elif not issubclass(kind, type) and kind.__module__ not in _DULL:
            attributes = getattr(value, "__dict__", None)
            if type(attributes) is dict:
                prefix = "" if name == "self" else f"{name}."
                for key, item in list(attributes.items())[:_ITEMS]:
                    if type(key) is str:
                        self._visit(prefix + key, item, depth + 1)

    def roots(self) -> list[tuple[str, Module]]:
        """Named modules that are not inside another named one. A wrapper gives way to the module it wraps, when that is named too."""
        wrapped: dict[int, int] = {}
        inside: set[int] = set()
        for _, module in self.modules.values():
            child = _wrapped(module)
            if child is not None and id(child) in self.modules:
                wrapped[id(module)] = id(child)
                continue
            inside.update(id(part) for part in module.modules() if part is not module)
        return [
            (name, module) for key, (name, module) in self.modules.items() if key not in wrapped and key not in inside
        ]


_ATOMS = frozenset((int, float, str, bytes, bool, type(None), complex, type, type(gc), type(lambda: 0), type(len)))
_DULL = frozenset(
    ("builtins", "argparse", "torch.utils.data.dataloader", "logging", "_io", "re", "numpy", "random", "torch")
)


def _wrapped(module: Module) -> Module | None:
    if type(module).__name__ in _WRAPPER_CLASSES:
        for attribute in _WRAPPERS:
            child = module._modules.get(attribute)
            if child is not None:
                return child
    return None


def _clean(path: str) -> str:
    """A path as the person wrote it: without what wrappers and parametrizations add."""
    for part in ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."):
        path = path.replace(part, "")
    return path


def _join(root: str, path: str) -> str:
    return f"{root}.{path}" if root and path else root or path


def shape_of(leaf: torch.Tensor) -> tuple[int, ...]:
    """Its shape; empty while a lazy module has not made it."""
    return () if is_lazy(leaf) else tuple(leaf.shape)


def resolve(leaves: list[torch.Tensor], space: Namespace, deep: bool) -> dict[int, Found]:
    """Name the leaves, by id(). `deep` allows a look at every live object when the frames do not know a leaf."""
    wanted = {id(leaf): leaf for leaf in leaves}
    found: dict[int, Found] = {}
    roots = space.roots()
    for name, root in roots:
        if len(found) == len(wanted):
            break
        _from_parameters(name, root, wanted, found)
    if len(found) < len(wanted):
        for name, root in roots:
            _from_containers(name, root, wanted, found)
    for key in wanted:
        if key not in found and key in space.tensors:
            found[key] = Found(space.tensors[key])
    if deep and len(found) < len(wanted):
        _from_anywhere(wanted, found)
    for key, leaf in wanted.items():
        if key not in found:
            found[key] = Found(f"<leaf {'×'.join(map(str, shape_of(leaf))) or 'scalar'}>")
    return found


def _from_parameters(name: str, root: Module, wanted: dict[int, torch.Tensor], found: dict[int, Found]) -> None:
    wrapped = _wrapped(root)
    inner = root if wrapped is None else wrapped
    for prefix, module in inner.named_modules(remove_duplicate=False):
        for key, parameter in module._parameters.items():
            if parameter is None or id(parameter) not in wanted:
                continue
            path = _clean(_join(prefix, key))
            full = _join(name, path)
            known = found.get(id(parameter))
            if known is None:
                found[id(parameter)] = Found(full, type(module).__name__, name or type(root).__name__, True, (), module)
            elif full != known.name and full not in known.shared and known.root == (name or type(root).__name__):
                found[id(parameter)] = Found(
                    known.name, known.module, known.root, True, (*known.shared, full), known.holder
                )


def _from_containers(name: str, root: Module, wanted: dict[int, torch.Tensor], found: dict[int, Found]) -> None:
    """Modules and parameters that a module keeps in a plain list, tuple or dict, or as a plain attribute: not registered."""
    own = {id(part) for part in root.modules()}
    for prefix, module in root.named_modules():
        for key, value in list(module.__dict__.items()):
            if key.startswith("_"):
                continue
            for path, item in _items(key, value, 0):
                label = _join(name, _join(prefix, path))
                if isinstance(item, Module) and id(item) not in own:
                    for sub, parameter in item.named_parameters():
                        if id(parameter) in wanted and id(parameter) not in found:
                            found[id(parameter)] = Found(
                                _join(label, sub), type(item).__name__, name or type(root).__name__, False, (), item
                            )
                elif isinstance(item, _Tensor) and id(item) in wanted and id(item) not in found:
                    found[id(item)] = Found(
                        label, type(module).__name__, name or type(root).__name__, False, (), module
                    )


def _items(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    kind = type(value)
    if issubclass(kind, (Module, _Tensor)):
        yield path, value
    elif depth < 3 and kind in (list, tuple):
        for index, item in enumerate(value[:_ITEMS]):
            yield from _items(f"{path}[{index}]", item, depth + 1)
    elif depth < 3 and kind is dict:
        for key, item in list(value.items())[:_ITEMS]:
            yield from _items(f"{path}[{key!r}]", item, depth + 1)


def _from_anywhere(wanted: dict[int, torch.Tensor], found: dict[int, Found]) -> None:
    """Look at every live module for the leaves no frame can name; what no module holds takes the key of a dict that refers to it."""
    modules = [thing for thing in gc.get_objects() if issubclass(type(thing), Module)]
    children = {id(child) for module in modules for child in module._modules.values() if child is not None}
    for module in modules:
        if id(module) not in children and any(
            id(p) in wanted and id(p) not in found
            for part in module.modules()
            for p in part._parameters.values()
            if p is not None
        ):
            _from_parameters(type(module).__name__, module, wanted, found)
    rest = [leaf for key, leaf in wanted.items() if key not in found][:8]
    if not rest:
        return
    for referrer in gc.get_referrers(*rest):
        if type(referrer) is dict:
            for key, value in list(referrer.items()):
                if type(key) is str and id(value) in wanted and id(value) not in found and value is wanted[id(value)]:
                    found[id(value)] = Found(key)
