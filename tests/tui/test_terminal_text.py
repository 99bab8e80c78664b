"""What a script writes to its terminal, as rows."""

from __future__ import annotations

import pytest

from gradtui.tui.terminal_text import MAX_CELLS, MAX_ROWS, TerminalText


def rows(*chunks: bytes) -> list[str]:
    """The rows' text after so many chunks."""
    text = TerminalText()
    for chunk in chunks:
        text.feed(chunk)
    return ["".join(piece for piece, _ in row) for row in text.rows]


def test_a_progress_bar_stays_on_its_line():
    assert rows(b" 1%|#   |\r", b"50%|##  |\r", b"99%|### |\r\n", b"done\r\n") == ["99%|### |", "done"]


def test_a_shorter_line_leaves_the_rest_of_the_longer_one_as_a_terminal_does():
    assert rows(b"abcdef\rxy") == ["xycdef"]
    assert rows(b"abcdef\r\x1b[Kxy") == ["xy"]


def test_two_bars_move_the_cursor_up():
    assert rows(b"a 1\r\nb 1\r\x1b[A", b"a 2\r\n", b"b 2\r\n") == ["a 2", "b 2"]


def test_colours_are_kept_and_end():
    text = TerminalText()
    text.feed(b"\x1b[31mred\x1b[0m plain")
    assert text.rows[0] == (("red", "sgr:31"), (" plain", ""))


@pytest.mark.parametrize("cut", range(1, 12))
def test_sequences_and_characters_may_be_cut_anywhere(cut: int):
    data = "\x1b[31mé日\x1b[0m".encode()
    assert rows(data[:cut], data[cut:]) == ["é日"]


def test_bad_bytes_and_other_sequences_do_no_harm():
    found = rows(b"a\xff\xfeb\x1b[2J\x1b[?1049h\x1b]0;title\x07c\x00\x01d\r\n")
    assert found == ["a��bcd"]


def test_memory_is_bounded():
    text = TerminalText()
    text.feed(b"x" * (3 * MAX_CELLS) + b"\n" + b"line\n" * (MAX_ROWS + 500))
    assert len(text) <= MAX_ROWS
    assert text.dropped >= 500
    assert all(sum(len(piece) for piece, _ in row) <= MAX_CELLS for row in text.window(0, 50))


def test_a_question_without_an_end_is_the_last_line():
    text = TerminalText()
    text.feed(b"hello\nname? ")
    assert text.last == "name? "
