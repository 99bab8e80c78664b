"""What gradtui itself refuses to do, and the exit codes it ends with; imports nothing of ours."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How `gradtui check` ends; `gradtui run` ends with the script's own code."""

    CLEAN = 0
    """No finding at or above --fail-on."""
    FINDINGS = 1
    """At least one finding at or above --fail-on."""
    USAGE = 2
    """Bad arguments, a script that is missing or is not Python, an unknown rule."""
    SCRIPT_FAILED = 3
    """The script itself ended with an error."""
    NOTHING_SEEN = 4
    """The script ended well and made no gradient call that could be seen."""


class GradtuiError(Exception):
    """Something a person did or has that gradtui cannot work with; the message is one line for them."""


class UsageError(GradtuiError):
    """Bad input: shown as one line on stderr, exit code 2."""


class TimelineError(GradtuiError):
    """A recording that is damaged, foreign, or of a later version."""


class WireError(GradtuiError):
    """A packet that does not parse; the connection it came on is closed."""
