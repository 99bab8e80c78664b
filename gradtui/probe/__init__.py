"""What runs inside the person's process: hooks on gradient calls, a link to the host, and the gate at which a run stops.

Needs the standard library and torch, nothing else; imports of ours are `events`, `errors` and `wire.encode` only. Nobody imports this
package: `inject/sitecustomize.py` starts it in another process.
"""
