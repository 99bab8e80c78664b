"""A person's settings: `[tool.gradtui]` in the nearest pyproject.toml above the program, then options on the command line."""

from __future__ import annotations

import fnmatch
import sys
from pathlib import Path
from typing import Any

from gradtui.errors import UsageError
from gradtui.rules import BY_SLUG, JudgeSettings, thresholds_from

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KNOWN = {"select", "ignore", "thresholds", "fail-on"}


def table() -> tuple[dict[str, Any], Path | None]:
    """(`[tool.gradtui]`, the file it is in), from the working directory upwards; empty where there is none."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return {}, None
    for folder in (here, *here.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            try:
                tools = tomllib.loads(path.read_text("utf-8")).get("tool", {})
            except (OSError, ValueError) as error:
                raise UsageError(f"{path}: {error}") from error
            return _checked(tools.get("gradtui", {}) if isinstance(tools, dict) else {}, path), path
    return {}, None


def _checked(found: Any, path: Path) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise UsageError(f"{path}: [tool.gradtui] is not a table")
    unknown = sorted(set(found) - _KNOWN)
    if unknown:
        raise UsageError(f"{path}: [tool.gradtui] has no setting {unknown[0]!r}; known are {', '.join(sorted(_KNOWN))}")
    for key in ("select", "ignore"):
        rules = found.get(key, [])
        if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
            raise UsageError(f"{path}: [tool.gradtui] {key} is not a list of rules")
    return found


def judge_settings(select: tuple[str, ...], ignore: tuple[str, ...]) -> tuple[JudgeSettings, dict[str, Any]]:
    """Settings for the rules, and the table they came from. Raises UsageError on a rule or threshold that is none."""
    found, path = table()
    chosen = _slugs(select) or tuple(found.get("select") or ())
    ignored = (*_slugs(ignore), *(found.get("ignore") or ()))
    for slug in (*chosen, *ignored):
        if not fnmatch.filter(BY_SLUG, slug):
            raise UsageError(f"no rule named {slug!r}; `gradtui explain` lists them")
    try:
        thresholds = thresholds_from(found.get("thresholds") or {})
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: {error}") from error
    return JudgeSettings(chosen, ignored, thresholds), found


def _slugs(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(slug.strip() for value in values for slug in value.split(",") if slug.strip())
