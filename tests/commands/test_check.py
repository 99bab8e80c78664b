"""The command line as a person meets it: real processes, exit codes, one clear line for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FAULTY = """
import torch

w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], lr=0.01)
for _ in range(4):
    loss = (w * w).sum()
    loss.backward(){comment}
    optimizer.step()
print("done")
"""


def gradtui(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gradtui", *arguments], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(FAULTY.format(comment=""))
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "missing.py"], "missing.py: no such file"),
        (["check", "."], "is a directory without a __main__.py"),
        (["check", "a" * 5000 + ".py"], "File name too long"),
        (["check"], "which program?"),
        (["check", "-m"], "requires an argument"),
        (["check", "--example"], "requires an argument"),
        (["check", "--select", "zzz*", "train.py"], "no rule named 'zzz*'"),
        (["check", "--example", "gann"], "did you mean gan"),
        (["check", "--select", "no-such-rule", "x.py"], "x.py: no such file"),
        (["explain", "stale-gradien"], "did you mean stale-gradient"),
        (["check", "--json", "nowhere/out.json", "train.py"], "the folder"),
        (["check", "--expect", "speed=4", "train.py"], "give KEY=VALUE"),
        (["run", "train.py"], "run needs a terminal"),
        (["check", "--", "no-such-command-at-all"], "no such command"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(script: Path, arguments: list[str], said: str) -> None:
    """Nothing is started, nothing is left behind."""
    done = gradtui(*arguments, cwd=script.parent)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_everything_after_the_scripts_name_is_the_scripts(tmp_path: Path) -> None:
    """Also what looks like ours: `--json`, `-m`, `--help`, `--`."""
    (tmp_path / "show.py").write_text("import sys; print(sys.argv)")
    arguments = ["--json", "x", "-m", "y", "--help", "--", "-q"]
    done = gradtui("check", "show.py", *arguments, cwd=tmp_path)
    assert done.stdout.strip() == str(["show.py", *arguments])
    assert done.returncode == 4


def test_a_faulty_program_is_reported_and_its_output_stays_its_own(script: Path) -> None:
    """stdout is the script's alone; report, JSON, SARIF and JUnit tell the same finding."""
    files = ["--json", "r.json", "--sarif", "r.sarif", "--junit", "r.xml"]
    done = gradtui("check", *files, "--expect", "accumulate=1", "train.py", cwd=script.parent)
    assert (done.returncode, done.stdout) == (1, "done\n")
    report = json.loads((script.parent / "r.json").read_text())
    (finding,) = report["findings"]
    assert (finding["rule"], finding["site"]["line"], finding["parameters"]) == ("stale-gradient", 8, ["w"])
    assert finding["first"] == {"kind": "backward", "ordinal": 2, "event": finding["first"]["event"]}
    assert report["ended"] == {"exit_code": 0, "signal": None}
    assert report["events"]["BackwardEnded"] == 4
    assert "stale-gradient" in done.stderr
    assert "stale-gradient" in (script.parent / "r.sarif").read_text()
    assert "stale-gradient" in (script.parent / "r.xml").read_text()


def test_a_known_finding_does_not_fail_and_a_broken_expectation_does(script: Path) -> None:
    """A baseline knows a finding by its line's text, so lines added above do not matter."""
    kept = gradtui("check", "-q", "--baseline", "known.json", "--update-baseline", "train.py", cwd=script.parent)
    script.write_text("# a line more\n" + script.read_text())
    known = gradtui(
        "check", "-q", "--baseline", "known.json", "--expect", "accumulate=4", "train.py", cwd=script.parent
    )
    assert kept.returncode == 0
    assert known.returncode == 1
    assert known.stderr.strip() == "gradtui: expected accumulate=4, but the run shows accumulate=1"


def test_a_comment_on_the_line_ignores_a_rule_there(script: Path) -> None:
    """`# gradtui: ignore[rule] reason`."""
    script.write_text(FAULTY.format(comment="  # gradtui: ignore[stale-gradient] a running sum is wanted"))
    assert gradtui("check", "-q", "train.py", cwd=script.parent).returncode == 0


def test_a_script_that_fails_is_told_from_one_with_findings(tmp_path: Path) -> None:
    """3, with the script's own traceback on stderr."""
    (tmp_path / "train.py").write_text("import torch\nraise SystemExit(7)")
    assert gradtui("check", "-q", "train.py", cwd=tmp_path).returncode == 3


def test_settings_of_the_project_are_respected(script: Path) -> None:
    """`[tool.gradtui]` in pyproject.toml; a mistake in it is told in one line."""
    project = script.parent / "pyproject.toml"
    project.write_text('[tool.gradtui]\nignore = ["stale-gradient"]\n')
    assert gradtui("check", "-q", "train.py", cwd=script.parent).returncode == 0
    project.write_text("[tool.gradtui]\nspeed = 3\n")
    done = gradtui("check", "-q", "train.py", cwd=script.parent)
    assert done.returncode == 2
    assert "no setting 'speed'" in done.stderr


@pytest.mark.parametrize(
    "named", [["-m", "mod"], ["-mmod"], ["-qm", "mod"], ["-qmmod"], ["mod.py"], ["--", sys.executable, "mod.py"]]
)
def test_what_follows_the_program_is_its_own(tmp_path: Path, named: list[str]) -> None:
    """However it is named."""
    (tmp_path / "mod.py").write_text("import sys\nprint(sys.argv[1:])\n")
    done = gradtui("check", *named, "-h", "-q", "-m", "x", "--", "--json", cwd=tmp_path)
    assert done.stdout == "['-h', '-q', '-m', 'x', '--', '--json']\n"
    assert done.returncode == 4


def test_a_closed_or_full_stderr_changes_no_exit_code(script: Path) -> None:
    """The report has nowhere to go; its verdict is told all the same."""
    for redirect in ("2>&-", ">&- 2>&- <&-", "2>/dev/full"):
        command = f"{sys.executable} -m gradtui check train.py {redirect}"
        assert subprocess.run(command, shell=True, cwd=script.parent, stdout=subprocess.DEVNULL).returncode == 1


@pytest.mark.parametrize(
    "settings", ["select = 3", "ignore = 'stale-gradient'", "select = ['zzz*']", "thresholds = 3", "bogus = 1"]
)
def test_settings_that_mean_nothing_are_one_line(script: Path, settings: str) -> None:
    """`[tool.gradtui]` of pyproject.toml."""
    (script.parent / "pyproject.toml").write_text(f"[tool.gradtui]\n{settings}\n")
    done = gradtui("check", "train.py", cwd=script.parent)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_script_may_come_through_a_pipe(tmp_path: Path) -> None:
    """`gradtui check <(generate)`: it is not read by us first, and its descriptor is passed on."""
    command = f"{sys.executable} -m gradtui check -q <(echo 'print(\"piped\")')"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("piped\n", "", 4)
