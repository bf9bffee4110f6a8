"""Hooks in the settings of agents: what is added, kept, known again, and taken back to the byte."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from daemon_process import flightrec, stored_commands, wait_until
from flightrec.client import request
from flightrec.errors import FlightrecError, NoDaemonError
from flightrec.hook_clients import CLIENTS, NAMES, HookFile, Syntax, find_client
from flightrec.hook_documents import Wanted, has_parts, with_parts, without_parts
from flightrec.hook_files import Person, plugin_for
from flightrec.hook_parts import Setup
from flightrec.installation import data_folder
from flightrec.paths import Paths, find_paths
from helper_builds import helper

SETUP = Setup(Path("/home/ann/.local/share/flightrec"), uses_zsh=True)
DOCUMENTS = [
    pytest.param(client.name, file, id=f"{client.name}-{file.file}")
    for client in CLIENTS
    for file in client.files
    if file.syntax is not Syntax.PLUGIN
]
OTHERS = {
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}],
        "preToolUse": [{"type": "command", "bash": "mine", "command": "mine"}],
    },
    "env": {"MINE": "1"},
    "version": 1,
}


def texts_of(file: HookFile) -> list[bytes | None]:
    if file.syntax is Syntax.TOML:
        return [None, b"", b"# mine\r\na = 1\r\n", b"[shell_environment_policy]\ninherit = 'all'"]
    others = json.dumps(OTHERS, indent=3)
    return [None, b"", b"{}", b"\xef\xbb\xbf{ }\n", others.encode(), json.dumps(OTHERS).encode()]


@pytest.mark.parametrize(("agent", "file"), DOCUMENTS)
def test_each_file_is_edited_once_and_taken_back_to_the_byte(agent: str, file: HookFile) -> None:
    wanted = Wanted(agent, SETUP)
    for before in texts_of(file):
        made, addition = with_parts(before, file, wanted, None)
        again, same = with_parts(made, file, wanted, addition)

        assert again == made
        assert same == addition
        assert made != before
        assert without_parts(made, file, addition) == before


@pytest.mark.parametrize(("agent", "file"), DOCUMENTS)
def test_in_a_file_that_changed_since_everything_else_stays(agent: str, file: HookFile) -> None:
    wanted = Wanted(agent, SETUP)
    for before in texts_of(file):
        made, addition = with_parts(before, file, wanted, None)
        changed = change(made, file)
        left = without_parts(changed, file, addition)

        assert left is not None
        assert meaning(left, file) == {**meaning(before or b"", file), "new": 1}
        older, note = with_parts(
            changed, file, Wanted(agent, Setup(Path("/old/flightrec"))), addition
        )
        newer, _ = with_parts(older, file, wanted, note)
        assert b"/old/" not in newer


def change(data: bytes, file: HookFile) -> bytes:
    """As an agent does that writes its settings anew."""
    if file.syntax is Syntax.TOML:
        mark = "new = 1\n"
        return mark.encode() + data
    return json.dumps({"new": 1, **json.loads(data.decode("utf-8-sig"))}, indent=2).encode()


def meaning(data: bytes, file: HookFile) -> dict[str, Any]:
    text = data.decode("utf-8-sig")
    found: dict[str, Any]
    found = tomllib.loads(text) if file.syntax is Syntax.TOML else json.loads(text or "{}")
    return found


def test_a_group_that_the_person_added_to_keeps_the_rest() -> None:
    file = find_client("claude").files[0]
    made, addition = with_parts(None, file, Wanted("claude", SETUP), None)
    settings = json.loads(made)
    settings["hooks"]["PreToolUse"][0]["hooks"].append({"type": "command", "command": "mine"})
    left = without_parts(json.dumps(settings).encode(), file, addition)

    assert left is not None
    assert json.loads(left) == {
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}]
        }
    }


def test_the_persons_own_bash_env_is_kept_beside_ours_and_given_back() -> None:
    file = find_client("claude").files[0]
    before = b'{"env": {"BASH_ENV": "/mine", "SHLVL": "3"}}'
    made, addition = with_parts(before, file, Wanted("claude", SETUP), None)

    assert json.loads(made)["env"] == {
        "BASH_ENV": "/home/ann/.local/share/flightrec/bash-env.bash",
        "FLIGHTREC_BASH_ENV": "/mine",
        "SHLVL": "3",
        "ZDOTDIR": "/home/ann/.local/share/flightrec/zdotdir",
    }
    assert has_parts(made, file, Wanted("claude", SETUP))
    left = without_parts(change(made, file), file, addition)
    assert left is not None
    assert json.loads(left)["env"] == {"BASH_ENV": "/mine", "SHLVL": "3"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"hooks": {}', "line 1 is no JSON"),
        (b"[]", "no JSON object"),
        (b'{"hooks": []}', "hooks is no object"),
        (b'{"hooks": {"PreToolUse": {}}}', "hooks.PreToolUse is no list"),
        (b"\xff{}", "no UTF-8"),
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(data: bytes, reason: str) -> None:
    with pytest.raises(FlightrecError, match=reason):
        with_parts(data, find_client("claude").files[0], Wanted("claude", SETUP), None)


@pytest.mark.parametrize("folder", ["/a b/it's", "/$(touch pwned)/`x`", '/"quoted"/#'])
def test_a_hook_runs_the_helper_and_nothing_once_it_is_gone(tmp_path: Path, folder: str) -> None:
    setup = Setup(tmp_path / folder.strip("/"))
    setup.folder.mkdir(parents=True)
    line = setup.hook_command("claude")
    words = ["/bin/sh", "-c", line]

    gone = subprocess.run(words, cwd=tmp_path, capture_output=True, input=b"{}", check=False)
    assert (gone.returncode, gone.stdout, gone.stderr) == (0, b"", b"")

    setup.helper.write_text('#!/bin/sh\necho "$@"; cat; exit 2\n')
    setup.helper.chmod(0o755)
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, input=b"{}", check=False)
    assert done.returncode == 0
    assert done.stdout.decode() == f"hook claude {setup.starter}\n{{}}"
    assert not (tmp_path / "pwned").exists()


# --- the command -----------------------------------------------------------------------------


@pytest.fixture(autouse=True, scope="module")
def _helper() -> None:
    helper()


@pytest.fixture
def agents(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of somebody who has none of the agents' variables set."""
    for client in CLIENTS:
        monkeypatch.delenv(client.folder.variable, raising=False)
    monkeypatch.setenv("SHELL", "/bin/bash")
    return home


def files_below(home: Path) -> set[str]:
    """All but the folders that flightrec may leave: its state is kept."""
    found = {str(path.relative_to(home)) for path in home.rglob("*")}
    return {name for name in found if not name.startswith(".local")}


def test_every_agent_is_installed_and_uninstalled_without_a_trace(agents: Path) -> None:
    (agents / ".claude").mkdir()
    settings = agents / ".claude/settings.json"
    settings.write_bytes(b'{\r\n\t"model": "x"\r\n}')
    settings.chmod(0o600)
    before = files_below(agents)

    done = flightrec("hook", "install", *NAMES, "--yes", home=agents)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    status = json.loads(flightrec("hook", "status", "--json", home=agents).stdout)
    assert {item["agent"] for item in status["items"]} == set(NAMES)
    assert {item["state"] for item in status["items"]} == {"installed"}
    again = flightrec("hook", "install", *NAMES, home=agents)
    assert again.stdout.count("installed already") == len(NAMES)

    done = flightrec("hook", "uninstall", "all", "--yes", home=agents)
    assert done.returncode == 0, done.stderr
    assert files_below(agents) == before
    assert settings.read_bytes() == b'{\r\n\t"model": "x"\r\n}'
    assert not data_folder(agents).exists()


def test_the_first_command_of_an_agent_starts_the_daemon(agents: Path) -> None:
    paths = find_paths(str(agents))
    flightrec("hook", "install", "claude", "--yes", home=agents)
    settings = json.loads((agents / ".claude/settings.json").read_text())
    marks = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "one"}
    environment = {"HOME": str(agents), "PATH": "/usr/bin:/bin", **settings["env"], **marks}
    try:
        subprocess.run(["/bin/bash", "-c", "exit 3"], env=environment, check=False)
        wait_until(lambda: is_there(paths))
        subprocess.run(["/bin/bash", "-c", "exit 4"], env=environment, check=False)
        wait_until(lambda: "exit 4" in stored_commands(paths.database))
    finally:
        with contextlib.suppress(NoDaemonError):
            request(paths, "stop", autostart=False)


def is_there(paths: Paths) -> bool:
    """Whether a daemon answers, and has its database."""
    with contextlib.suppress(FlightrecError):
        return bool(request(paths, "status", autostart=False)) and paths.database.exists()
    return False


def test_uninstall_takes_hooks_back_as_well(agents: Path) -> None:
    flightrec("hook", "install", "claude", "opencode", "--yes", home=agents)
    done = flightrec("uninstall", "--yes", home=agents)

    assert done.returncode == 0, done.stderr
    assert f"hooks in {agents}/.claude/settings.json" in done.stdout
    assert files_below(agents) == set()


def test_dry_run_shows_the_difference_and_changes_nothing(agents: Path) -> None:
    done = flightrec("hook", "install", "gemini", "--dry-run", home=agents)

    assert "+++ " in done.stdout
    assert '"BeforeTool"' in done.stdout
    assert not (agents / ".gemini").exists()
    assert not data_folder(agents).exists()


def test_where_one_file_is_broken_none_is_changed(agents: Path) -> None:
    (agents / ".claude").mkdir()
    broken = agents / ".claude/settings.json"
    broken.write_text('{\n  "a": 1 // mine\n}\n')
    before = files_below(agents)
    done = flightrec("hook", "install", "gemini", "claude", "--yes", home=agents)

    assert done.returncode == 1
    assert done.stderr.startswith(f"flightrec: {broken}: line 2 is no JSON: ")
    assert done.stderr.count("\n") == 1
    assert files_below(agents) == before
    status = flightrec("hook", "status", "--json", "claude", home=agents)
    assert status.returncode == 1
    assert json.loads(status.stdout)["items"][0]["state"] == "broken"


def test_without_a_terminal_and_without_yes_nothing_is_changed(agents: Path) -> None:
    done = flightrec("hook", "install", "gemini", home=agents)

    assert done.returncode == 2
    assert "add --yes" in done.stderr
    assert not (agents / ".gemini").exists()


def test_variables_move_the_folders(agents: Path) -> None:
    moved = {
        "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/o", "COPILOT_HOME": "/p"
    }  # fmt: skip
    env = {name: f"{agents}{path}" for name, path in moved.items()}
    flightrec(
        "hook", "install", "claude", "codex", "opencode", "copilot", "-y", home=agents, env=env
    )

    for name in (
        "c/settings.json", "x/hooks.json", "x/config.toml", "o/opencode/plugins/flightrec.js",
        "p/hooks/flightrec.json",
    ):  # fmt: skip
        assert (agents / name).is_file(), name
    done = flightrec("hook", "uninstall", "all", "-y", home=agents)
    assert done.returncode == 0, done.stderr
    assert files_below(agents) == set()


def test_a_link_is_followed_inside_the_home_and_not_out_of_it(agents: Path, tmp_path: Path) -> None:
    (agents / "dotfiles").mkdir()
    real = agents / "dotfiles/claude.json"
    real.write_text('{"a": 1}')
    (agents / ".claude").mkdir()
    (agents / ".claude/settings.json").symlink_to("../dotfiles/claude.json")
    outside = tmp_path / "settings.json"
    outside.write_text("{}")
    (agents / ".qwen").mkdir()
    (agents / ".qwen/settings.json").symlink_to(outside)

    done = flightrec("hook", "install", "claude", "--yes", home=agents)
    assert done.returncode == 0, done.stderr
    assert "hooks" in json.loads(real.read_text())
    assert (agents / ".claude/settings.json").is_symlink()
    refused = flightrec("hook", "install", "qwen", "--yes", home=agents)
    assert refused.returncode == 1
    assert "leads out of" in refused.stderr
    assert outside.read_text() == "{}"


def test_a_plugin_of_somebody_elses_is_left_alone(agents: Path) -> None:
    plugin = agents / ".pi/agent/extensions/flightrec.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export default () => {}\n")
    done = flightrec("hook", "install", "pi", "--yes", home=agents)

    assert done.returncode == 1
    assert done.stderr.startswith(f"flightrec: {plugin}: is no file of flightrec's")
    assert plugin.read_text() == "export default () => {}\n"


def test_a_project_gets_the_file_that_is_the_persons_own_there(
    agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = agents / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", project], check=True)
    monkeypatch.chdir(project)
    exclude = project / ".git/info/exclude"
    excluded = exclude.read_bytes()
    words = ("--scope", "project", "--yes")
    done = flightrec("hook", "install", "claude", "cursor", *words, home=agents)

    assert done.returncode == 0, done.stderr
    assert f"{project}/.cursor/hooks.json is shared" in done.stdout
    assert "settings.local.json is shared" not in done.stdout
    assert (project / ".claude/settings.local.json").is_file()
    assert not (agents / ".claude").exists()
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], capture_output=True, check=True
    )
    assert status.stdout == b"?? .cursor/hooks.json\n"
    refused = flightrec("hook", "install", "copilot", *words, home=agents)
    assert "copilot has no hooks for one project" in refused.stderr

    monkeypatch.chdir("/")
    done = flightrec("hook", "uninstall", "all", "--yes", home=agents)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in project.iterdir()} == {".git"}
    assert exclude.read_bytes() == excluded


def test_a_personal_file_that_git_tracks_is_called_shared(
    agents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = agents / "project/.claude/settings.local.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    monkeypatch.chdir(agents / "project")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], check=True)
    done = flightrec("hook", "install", "claude", "--scope", "project", "--yes", home=agents)
    assert f"{settings} is shared" in done.stdout
    flightrec("hook", "uninstall", "claude", "--yes", home=agents)
    assert settings.read_text() == "{}"


def test_all_means_the_agents_that_are_used_here(agents: Path) -> None:
    env = {"PATH": "/usr/bin:/bin"}
    none = flightrec("hook", "install", "all", home=agents, env=env)
    assert "no agent was found here" in none.stderr

    (agents / ".qwen").mkdir()
    done = flightrec("hook", "install", "all", "--yes", home=agents, env=env)
    assert done.stdout.splitlines()[-1].startswith("Qwen Code: installed")


def test_an_unknown_agent_is_answered_with_those_there_are(agents: Path) -> None:
    done = flightrec("hook", "install", "clod", home=agents)

    assert done.returncode == 2
    assert "invalid choice: 'clod' (choose from 'claude', 'codex'" in done.stderr


# --- plugins ---------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["opencode", "pi"])
def test_a_plugin_is_a_program_whatever_the_folder_is_called(agent: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node here")
    text = plugin_for(agent, Setup(Path('/a "b"/\\n$x')))
    assert "@" not in text.split("const LIMIT_MS")[0].split("const AGENT")[1]
    script = tmp_path / "plugin.mjs"
    script.write_text(text)
    done = subprocess.run([node, "--check", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_whoever_looks_from_another_shell_sees_the_same() -> None:
    file = find_client("claude").files[0]
    made, _ = with_parts(None, file, Wanted("claude", SETUP), None)
    other = Wanted("claude", Setup(SETUP.folder, uses_zsh=False))
    assert has_parts(made, file, other)
    elsewhere = made.replace(b"/home/ann", b"/home/bob")
    assert not has_parts(elsewhere, file, other)


def test_person_knows_zsh_by_the_login_shell(home: Path) -> None:
    person = Person(find_paths(str(home)), {**os.environ, "SHELL": "/usr/bin/zsh"})
    assert person.setup.uses_zsh
