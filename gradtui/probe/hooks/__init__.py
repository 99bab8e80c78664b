"""One file a hook: each installs itself into torch and can take itself out again. Hooks do not know each other."""
