"""`gradtui check`: run a training program to its end and report what is wrong with its gradients."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from gradtui import __version__
from gradtui.commands.controls import (
    parse_expectations,
    read_baseline,
    unmet,
    without_ignored,
    without_known,
    write_baseline,
)
from gradtui.commands.program import ProgramCommand, launch_of, program_options
from gradtui.commands.settings import judge_settings
from gradtui.errors import ExitCode, UsageError
from gradtui.host.check import Checked
from gradtui.report.report import GRAVITY, Report, report_of

_NONFINITE = {"nonfinite-gradient", "nonfinite-loss", "scaler-always-skips", "poisoned-gradient-kept"}


@click.command("check", cls=ProgramCommand)
@program_options
@click.option(
    "--json", "json_file", metavar="FILE", type=click.Path(dir_okay=False), help="Write the report there as JSON."
)
@click.option("--sarif", "sarif_file", metavar="FILE", type=click.Path(dir_okay=False), help="Write it there as SARIF.")
@click.option(
    "--junit", "junit_file", metavar="FILE", type=click.Path(dir_okay=False), help="Write it there as JUnit XML."
)
@click.option("--github", is_flag=True, help="Print GitHub annotations on stderr (on by itself in GitHub Actions).")
@click.option("--baseline", metavar="FILE", help="Findings known in this file do not count.")
@click.option("--update-baseline", is_flag=True, help="Write the findings of this run to the --baseline file.")
@click.option(
    "--expect",
    metavar="K=V,…",
    multiple=True,
    help="Fail unless the run shows accumulate=N, amp=yes|no, clip='norm 1', averaged=yes|no.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "info", "never"]),
    help="Fail on findings of this severity or graver (default: error).",
)
@click.option(
    "--select", metavar="RULES", multiple=True, help="Only these rules (comma-separated; patterns such as clip-*)."
)
@click.option("--ignore", metavar="RULES", multiple=True, help="Not these rules.")
@click.option(
    "--watch",
    type=click.Choice(["params", "ops"]),
    default="params",
    help="ops: watch every operation, so that the first NaN or Inf is named by its operation and line.",
)
@click.option("--find-origin", is_flag=True, help="If NaN or Inf is found, run the program once more with --watch ops.")
@click.option("-q", "--quiet", is_flag=True, help="No report; only the exit code and the files asked for.")
@click.pass_context
def command(
    ctx: click.Context,
    program: tuple[str, ...],
    module: str | None,
    example: str | None,
    python: str | None,
    json_file: str | None,
    sarif_file: str | None,
    junit_file: str | None,
    github: bool,
    baseline: str | None,
    update_baseline: bool,
    expect: tuple[str, ...],
    fail_on: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    watch: str,
    find_origin: bool,
    quiet: bool,
) -> int:
    """Run a training program to its end and report what is wrong.

    The program keeps stdin, stdout and stderr as they are; the report follows on stderr when it has ended.

    \b
    Exit codes:
      0  clean            1  findings at or above --fail-on
      2  bad usage        3  the program itself failed
      4  no gradient call was seen
    """
    launch = launch_of(ctx, program, module, example, python)
    settings, found = judge_settings(select, ignore)
    level = fail_on or str(found.get("fail-on", "error"))
    if level not in (*GRAVITY, "never"):
        raise UsageError(f"fail-on must be error, warning, info or never, not {level!r}")
    expected = parse_expectations(",".join(expect))
    if update_baseline and baseline is None:
        raise UsageError("--update-baseline needs --baseline FILE")
    known = read_baseline(baseline) if baseline is not None else []
    for option, file in (("--json", json_file), ("--sarif", sarif_file), ("--junit", junit_file)):
        if file is not None:
            _check_writable(option, file)
    from gradtui.host.check import check

    checked = check(launch, settings, watch)
    if find_origin and watch != "ops" and _has_nonfinite(checked):
        click.echo("gradtui: NaN or Inf was found; running the program once more with --watch ops", err=True)
        checked = check(launch, settings, "ops")
    report = report_of(
        without_ignored(checked.findings),
        checked.ledger,
        checked.kinds,
        checked.ending.exit_code,
        checked.ending.signal,
        __version__,
        shlex.join(launch.command),
    )
    if baseline is not None and update_baseline:
        write_baseline(baseline, report.findings)
        known = read_baseline(baseline)
    report = without_known(report, known)
    _write_files(report, json_file, sarif_file, junit_file, level)
    _warn_of_misplaced(program)
    if not quiet:
        _print(report)
    if github or os.environ.get("GITHUB_ACTIONS") == "true":
        from gradtui.report.github import render as as_annotations

        click.echo(as_annotations(report), err=True, nl=False)
    broken = list(unmet(expected, report))
    for sentence in broken:
        click.echo(f"gradtui: {sentence}", err=True)
    return ExitCode.FINDINGS if broken else exit_code(report, checked, level)


def _write_files(
    report: Report, json_file: str | None, sarif_file: str | None, junit_file: str | None, level: str
) -> None:
    if json_file is not None:
        from gradtui.report.json_report import render as as_json

        _write(json_file, json.dumps(as_json(report), indent=1) + "\n")
    if sarif_file is not None:
        from gradtui.report.sarif import render as as_sarif

        _write(sarif_file, json.dumps(as_sarif(report), indent=1) + "\n")
    if junit_file is not None:
        from gradtui.report.junit import render as as_junit

        _write(junit_file, as_junit(report, level))


def _warn_of_misplaced(program: tuple[str, ...]) -> None:
    """Say so when the program was given an option of ours that it did nothing with."""
    for option, file in pairwise(program):
        if option in ("--json", "--sarif", "--junit") and not Path(file).exists():
            click.echo(f"gradtui: {option} after the script's name went to the script; write it before", err=True)


def _has_nonfinite(checked: Checked) -> bool:
    return any(finding.rule in _NONFINITE and finding.status == "confirmed" for finding in checked.findings)


def exit_code(report: Report, checked: Checked, level: str) -> ExitCode:
    """How the check ends: findings that explain a failing program count before its failure."""
    if level != "never" and any(GRAVITY[finding.severity] >= GRAVITY[level] for finding in report.findings):
        return ExitCode.FINDINGS
    if checked.ending.signal is not None or checked.ending.exit_code:
        return ExitCode.SCRIPT_FAILED
    return ExitCode.CLEAN if checked.ending.calls else ExitCode.NOTHING_SEEN


def _check_writable(option: str, file: str) -> None:
    folder = Path(file).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"{option} {file}: the folder {folder} does not exist")


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from error


def _print(report: Report) -> None:
    from gradtui.report.text import render

    if sys.stderr is None:  # closed
        return
    with contextlib.suppress(OSError):  # full, or closed at the other end: the exit code still tells
        click.echo(render(report, style()), err=True, nl=False)


def style(stream: Any = None) -> Any:
    """Colour and width for text on a stream (stderr unless told): NO_COLOR and a missing terminal are respected."""
    from gradtui.report.style import Style

    stream = stream or sys.stderr
    colour = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    return Style(colour=bool(colour), width=width)
