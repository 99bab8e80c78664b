"""First code of ours in the person's interpreter: waits for torch to be imported, then starts the probe; chains to any other sitecustomize.

Found through PYTHONPATH, which child processes inherit on purpose. Leaves sys.path as it would be without us.
"""

import os as _os
import sys as _sys


def _chain() -> None:
    """Run the sitecustomize that would have been found without ours, under its own name."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = _os.path.dirname(_os.path.abspath(__file__))
    _sys.path[:] = [entry for entry in _sys.path if not _os.path.isabs(entry) or _os.path.abspath(entry) != here]
    _sys.path_importer_cache.pop(here, None)
    spec = PathFinder.find_spec("sitecustomize", _sys.path)
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = module_from_spec(spec)
    _sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


class _TorchFinder:
    """Finds torch as the others do, and has the probe started when it has been executed. Survives any number of find_spec calls."""

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        if name != "torch":
            return None
        for finder in _sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                self._wrap(spec.loader)  # type: ignore[no-untyped-call]
                return spec
        return None

    def _wrap(self, loader):  # type: ignore[no-untyped-def]
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):  # type: ignore[no-untyped-def]
            del loader.exec_module
            execute(module)
            if self in _sys.meta_path:
                _sys.meta_path.remove(self)
            _start_probe()

        loader.exec_module = exec_module


def _start_probe() -> None:
    """Load gradtui from beside this file, whatever else is installed, and start the probe; never let a fault of ours out."""
    try:
        root = _os.path.dirname(_os.path.dirname(_os.path.dirname(_os.path.abspath(__file__))))
        if "gradtui" not in _sys.modules:
            from importlib.util import module_from_spec, spec_from_file_location

            spec = spec_from_file_location(
                "gradtui", _os.path.join(root, "__init__.py"), submodule_search_locations=[root]
            )
            if spec is None or spec.loader is None:
                return
            module = module_from_spec(spec)
            _sys.modules["gradtui"] = module
            spec.loader.exec_module(module)
        from gradtui.probe.start import start

        start()
    except Exception:
        if _os.environ.get("GRADTUI_DEBUG"):
            raise


if _os.environ.get("GRADTUI_SOCKET"):
    _sys.meta_path.insert(0, _TorchFinder())
_chain()
