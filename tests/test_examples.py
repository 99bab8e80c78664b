"""The bundled training scripts: each is an ordinary program that runs without gradtui, and each is listed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gradtui.errors import UsageError
from gradtui.examples import Example, example, examples

SHORT = {
    "char_gru": ["--steps", "2", "--batch-size", "4"],
    "digits_cnn": ["--epochs", "1"],
    "no_zero_grad": ["--epochs", "1"],
}
"""Arguments that make a script end soon; `--steps 2` for the others."""


def run_bare(script: Example, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script.path), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("script", examples(), ids=lambda script: script.name)
def test_runs_without_gradtui(script: Example):
    done = run_bare(script, *SHORT.get(script.name, ["--steps", "2"]))
    assert (done.returncode, done.stderr) == (0, "")
    assert "step" in done.stdout or "epoch" in done.stdout


def test_every_script_of_the_folder_is_listed():
    folder = examples()[0].path.parent
    assert {script.path for script in examples()} == set(folder.glob("*.py")) - {folder / "__init__.py"}


def test_titles_fit_on_a_line_of_the_list():
    for script in examples():
        assert script.title != script.name
        assert 20 <= len(script.title) <= 90


def test_is_found_by_its_name():
    assert example("gan") == next(script for script in examples() if script.name == "gan")


def test_a_near_miss_is_answered_with_the_right_name():
    with pytest.raises(UsageError, match=r"^no example named 'char_gur': did you mean char_gru\?$"):
        example("char_gur")


def test_an_unknown_name_is_answered_with_all_names_on_one_line():
    with pytest.raises(UsageError) as raised:
        example("zzz")
    assert all(script.name in str(raised.value) for script in examples())
    assert "\n" not in str(raised.value)


def test_digits_says_what_to_install_when_scikit_learn_is_missing(tmp_path):
    (tmp_path / "sklearn.py").write_text("raise ImportError('hidden for this test')\n")
    script = example("digits_cnn").path
    code = f"import runpy, sys; sys.path.insert(0, {str(tmp_path)!r}); runpy.run_path({str(script)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == "this example needs scikit-learn for its images: pip install scikit-learn\n"
