"""gradtui: a terminal debugger for gradients in PyTorch.

Importing this package costs nothing: it loads no torch, no textual and starts nothing.
"""

__version__ = "0.1.0"
