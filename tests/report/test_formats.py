"""What people, machines and services read: text, JSON, SARIF, JUnit, workflow commands, explanations."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from gradtui.report import Report, github, json_report, junit, report_of, sarif, text
from gradtui.report.explain import explain, overview
from gradtui.report.style import Style
from gradtui.rules import RULES
from tests.rules.builders import Run, model


def faulty() -> Run:
    """No zero_grad, and a clear between backward and step elsewhere."""
    run = model()
    for _ in range(3):
        run.backward()
        run.step()
    return run


def report(run: Run, exit_code: int | None = 0, signal: int | None = None) -> Report:
    findings = run.judge.finish(exit_code, signal)
    kinds: dict[str, int] = {}
    for event in run.events:
        kinds[type(event).__name__] = kinds.get(type(event).__name__, 0) + 1
    return report_of(findings, run.judge.ledger, kinds, exit_code, signal, "0.1.0", "train.py --epochs 3")


# -- text -------------------------------------------------------------------------------------------------------------


def test_text_tells_what_where_which_since_when_and_what_to_do():
    shown = text.render(report(faulty()))
    assert shown.startswith("error stale-gradient  /proj/train.py:20\n    loss.backward()\n")
    for part in (
        "never cleared",
        "fix ",
        "with ",
        "/proj/train.py:30",
        "parameters 4: model.a.weight",
        "since      backward 2, 2 times",
        "evidence",
    ):
        assert part in shown
    assert "1 error; the script ended normally" in shown


def test_text_fits_the_width_it_is_given():
    for width in (60, 80, 120):
        lines = text.render(report(faulty()), Style(width=width)).splitlines()
        assert max(len(line) for line in lines if "/proj/" not in line) <= width


def test_text_is_plain_without_colour_and_painted_with_it():
    plain, painted = text.render(report(faulty())), text.render(report(faulty()), Style(colour=True))
    assert "\x1b" not in plain
    assert "\x1b[1;31merror\x1b[0m" in painted


def test_a_clean_run_says_so_and_shows_what_the_program_does():
    shown = text.render(report(model().loop(3)))
    assert "nothing wrong found; the script ended normally" in shown
    assert "Each step of `optimizer` uses one backward; gradients are cleared at train.py:10." in shown


def test_consequences_are_named_under_their_cause():
    run = model()
    for _ in range(4):
        run.backward()
        run.zero()
        run.step()
    shown = text.render(report(run))
    assert "explains   step-without-gradient" in shown
    assert "error step-without-gradient" not in shown


@pytest.mark.parametrize(
    ("ending", "said"),
    [((3, None), "failed with exit code 3"), ((None, 9), "ended by SIGKILL"), ((None, None), "not known")],
)
def test_how_the_script_ended_is_said(ending, said):
    assert said in text.render(report(model().loop(2), *ending))


def test_a_script_without_any_gradient_call_is_told():
    assert "no gradient call was seen" in text.render(report(Run()))


# -- JSON -------------------------------------------------------------------------------------------------------------


def test_json_holds_what_the_scorer_asks_for():
    found = json.loads(json.dumps(json_report.render(report(faulty()))))
    (finding,) = found["findings"]
    assert finding["rule"] == "stale-gradient"
    assert finding["site"] == {"file": "/proj/train.py", "line": 20, "function": "train", "source": "loss.backward()"}
    assert finding["first"] == {"kind": "backward", "ordinal": 2, "event": 5}
    assert finding["parameters"] == ["model.a.weight", "model.a.bias", "model.b.weight", "model.b.bias"]
    assert finding["count"] == 2
    assert found["ended"] == {"exit_code": 0, "signal": None}
    assert found["events"]["BackwardEnded"] == 3
    assert found["summary"]["accumulate"] == 1
    assert found["versions"] == {"gradtui": "0.1.0"}


def test_json_keeps_consequences_apart():
    run = model()
    for _ in range(4):
        run.backward()
        run.zero()
        run.step()
    found = json_report.render(report(run))
    assert [f["rule"] for f in found["findings"]] == ["gradient-discarded"]
    assert [(f["rule"], f["cause"]) for f in found["consequences"]] == [("step-without-gradient", "gradient-discarded")]


# -- SARIF, JUnit, workflow commands ----------------------------------------------------------------------------------


def test_sarif_names_rule_level_line_and_fingerprint():
    log = sarif.render(report(faulty()), base="/proj")
    (run,) = log["runs"]
    (result,) = run["results"]
    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "stale-gradient"
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("train.py", 20)
    assert result["partialFingerprints"] == {"gradtui/v1": "stale-gradient:loss.backward()"}
    assert run["invocations"][0] == {"executionSuccessful": True, "commandLine": "train.py --epochs 3", "exitCode": 0}


def test_sarif_paths_outside_the_folder_are_uris():
    log = sarif.render(report(faulty()), base="/elsewhere")
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "file:///proj/train.py"


def test_junit_has_a_case_for_every_rule_and_fails_only_what_found_something():
    root = ElementTree.fromstring(junit.render(report(faulty())).encode())
    cases = root.findall(".//testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert len(cases) == len(RULES) + 1
    assert failed == ["stale-gradient"]
    assert (root.get("failures"), root.get("errors")) == ("1", "0")


def test_junit_tells_a_script_that_failed():
    root = ElementTree.fromstring(junit.render(report(model().loop(2), 1)).encode())
    assert root.get("errors") == "1"


def test_workflow_commands_escape_what_would_end_them():
    (line,) = github.render(report(faulty()), base="/proj").splitlines()
    assert line.startswith("::error file=train.py,line=20,title=gradtui%3A stale-gradient::")
    assert "\n" not in line


# -- explanations -----------------------------------------------------------------------------------------------------


def test_every_rule_is_listed_with_one_sentence():
    shown = overview(Style(width=100))
    for rule in RULES:
        assert rule.slug in shown


@pytest.mark.parametrize("slug", [rule.slug for rule in RULES])
def test_a_rule_explains_what_it_means_why_and_what_to_do(slug):
    shown = explain(slug)
    assert shown.index("What it means") < shown.index("Why it matters") < shown.index("What to do")


def test_a_rule_that_does_not_exist_is_refused():
    with pytest.raises(KeyError):
        explain("no-such-rule")
