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


@pytest.mark.parametrize("speed", ["0", "-1", "inf", "nan", "fast"])
def test_a_speed_is_a_positive_number(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["replay", "x.jsonl", "--speed", speed])
    assert "--speed" in capsys.readouterr().err


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
