"""What the command takes, and what it says about it."""

import pytest

from adk_stream_protocol.cli_options import build_parser


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("1970-01-02", 86400), ("1970-01-01T00:01", 60), ("1970-01-01T02:00+02:00", 0)],
)
def test_times_are_utc_unless_they_say_otherwise(given: str, seconds: float) -> None:
    options = build_parser().parse_args(["audit", "--database", "sqlite+aiosqlite:///x.db", "--since", given])
    assert options.since == seconds


WRONG = {
    "--speed": ("replay x.jsonl", ["0", "-1", "inf", "nan", "fast", ""], "a speed is a number above 0"),
    "--port": ("demo", ["-1", "65536", "80a", ""], "a port is a number from 0 to 65535"),
    "--since": ("audit --database x", ["yesterday", "12:00", ""], "a time is written like 2026-01-31T12:00"),
    "--until": ("audit --database x", ["tomorrow"], "a time is written like 2026-01-31T12:00"),
}


@pytest.mark.parametrize(("option", "value"), [(option, value) for option in WRONG for value in WRONG[option][1]])
def test_a_wrong_value_is_refused_with_what_is_expected(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, _, expected = WRONG[option]
    with pytest.raises(SystemExit, match="2"):
        build_parser().parse_args([*command.split(), f"{option}={value}"])
    assert capsys.readouterr().err.endswith(f"error: argument {option}: {expected}, not {value!r}\n")


def test_options_that_may_be_repeated_are_lists_for_each_command_line_anew() -> None:
    first = build_parser().parse_args(["serve", "a", "--send-state", "cart", "--send-state", "user:name"])
    assert first.send_state == ["cart", "user:name"]
    assert build_parser().parse_args(["serve", "a"]).send_state == []
    assert build_parser().parse_args(["demo"]).send_state == []


@pytest.mark.parametrize("command", ["demo", "serve", "record"])
def test_the_help_of_a_command_names_its_defaults(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for default in ("(default: 8000)", "(default: 127.0.0.1)", "(default: memory;", "(default: none)"):
        assert default in said
