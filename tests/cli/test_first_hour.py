"""What a new user meets: help, suggestions, the demo, completion."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess

import pytest

from conftest import program, wait_for
from terminal import Terminal

PROGRAM = program()


def text_of(cli, *words):
    return cli.ok(*words).out


def commands(cli):
    return text_of(cli, "docs", "commands").split()


def flags_of(cli, command):
    return set(re.findall(r"^  --([a-z0-9-]+)", text_of(
        cli, command, "--help", "all"), re.M))


def test_without_arguments_it_says_what_to_try_first(cli):
    done = subprocess.run([PROGRAM], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    tried = re.findall(r"^  paceline ([a-z]+)", done.stderr, re.M)
    assert tried[0] == "demo" and set(tried) <= set(commands(cli))


def test_help_of_each_command_begins_with_three_examples(cli):
    for command in commands(cli):
        text = text_of(cli, command, "--help")
        assert text.startswith("Examples:\n"), command
        examples = text.split("\nusage:")[0]
        # launch and train also appear in examples of other commands
        words = re.findall(r"^  paceline ([a-z]+)(.*)", examples, re.M)
        assert len(words) == 3, command
        for name, rest in words:
            own = rest.split("  ")[0].split(" -- ")[0]
            given = set(re.findall(r" --([a-z-]+)", own))
            assert given <= flags_of(cli, name), (command, name, given)
        assert max(map(len, text.splitlines())) <= 80, command


def test_help_shows_the_flags_most_people_need(cli):
    shown = re.findall(r"^  --([a-z-]+)", text_of(cli, "train", "--help"),
                       re.M)
    assert 10 <= len(shown) <= 14 and {"data", "lr", "workers"} <= set(shown)
    assert set(shown) < flags_of(cli, "train")
    assert "--help all" in text_of(cli, "train", "--help")
    assert "--help all" not in text_of(cli, "page", "--help")
    for command in commands(cli):  # a few of many flags, or all of few
        count = len(re.findall(r"^  --", text_of(cli, command, "--help"), re.M))
        assert count == len(flags_of(cli, command)) or 8 <= count <= 14, command


MODELS = ["alexnet", "lenet", "mlp", "resnet18"]  # with flags of their own


def test_help_of_each_flag_has_a_reason(cli):
    # three paragraphs: the help, the reason, the value
    shared = flags_of(cli, "train")
    for command in commands(cli):
        flags = flags_of(cli, command)
        for flag in flags - shared if command == "models" else flags:
            text = text_of(cli, command, "--help", flag)
            assert text.count("\n\n  ") == 3, (command, flag)
    for model in MODELS:
        flags = re.findall(r"^  --([a-z0-9-]+)", text_of(
            cli, "train", model, "--help", "all"), re.M)
        for flag in set(flags) - shared:
            text = text_of(cli, "train", model, "--help", flag)
            assert text.count("\n\n  ") == 3, (model, flag)


def test_help_of_one_flag_has_its_range_default_and_condition(cli):
    text = text_of(cli, "train", "softmax", "--help", "staleness")
    assert "from 0 to 1000000000" in text and "default   0" in text
    assert "needs     --mode ssp, a parameter server" in text
    assert text == text_of(cli, "train", "softmax", "--help", "--staleness")
    assert text == text_of(cli, "train", "softmax", "--help=staleness")
    assert "100" in text_of(cli, "train", "softmax", "--help", "batch")
    assert "needs     no --json" in text_of(cli, "predict", "--help", "csv")


@pytest.mark.parametrize("words,near", [
    (["trian"], "did you mean train?"),
    (["--hlep"], "did you mean --help?"),
    (["softmax"], "did you mean train softmax?"),
    (["train", "sofmax"], "did you mean softmax?"),
    (["train", "softmax", "--bacth", "3"], "did you mean --batch?"),
    (["train", "softmax", "--mode", "asinc"], "did you mean async?"),
    (["train", "--help", "optimiser"], "did you mean --optimizer?"),
    (["data", "stat", "x"], "did you mean data stats?"),
    (["docs", "option"], "did you mean docs options?"),
    (["page", "--prot", "1"], "did you mean --port?"),
])
def test_misspelled_words_get_the_nearest_suggestion(cli, words, near):
    cli.refused(2, *words, says=near)


@pytest.mark.parametrize("command", ["report", "compare", "profile"])
def test_folder_that_does_not_exist_is_named(cli, command):
    cli.refused(1, command, "nowhere",
                says="nowhere: there is no such folder; expected a run folder")


def test_commands_are_listed_in_80_columns(cli):
    lines = text_of(cli, "--help").splitlines()
    assert max(map(len, lines)) <= 80
    for command in commands(cli):
        assert any(re.match(rf"  {command} +\S", line) for line in lines)


def test_version_names_what_it_was_built_with(cli):
    text = text_of(cli, "--version")
    assert re.match(r"paceline \d+\.\d+\.\d+", text)
    for what in "instruction sets", "oneDNN", "MPI":
        assert re.search(rf"^{what} +\S", text, re.M), text


def test_after_a_run_a_terminal_shows_what_to_do_next(cli):
    terminal = Terminal(120)
    process = cli.start("train", "softmax", "--steps", "50", "--run", "r",
                        stdin=terminal.follower, stdout=terminal.follower,
                        stderr=terminal.follower)
    terminal.started()
    assert process.wait() == 0
    text = "\n".join(terminal.rows())
    assert text.count("next  look") == 1
    again = re.search(r"continue +(paceline train .*--steps 100)", text)
    assert again, text
    words = again[1].split()[1:]
    assert cli.ok(*words, "--json").json["steps"] == 100
    assert "next  look" not in cli.ok("train", "softmax", "--steps", "5").out


def test_demo_trains_recovers_and_reports(cli):
    done = cli.ok("demo", "--seconds", "0.3", "--no-wait")
    assert "are equal, bit for bit, to" in done.out, done.out
    assert "kill -9" in done.err
    summary = json.loads((cli.folder / "paceline-demo/cluster/summary.json")
                         .read_text())
    assert summary["restarts"] == 1
    page = (cli.folder / "paceline-demo/report.html").read_text()
    assert "</html>" in page
    assert re.search(r"http://127.0.0.1:\d+/\?token=", done.out)
    cli.refused(2, "demo", says="already exists")


def test_demo_ends_cleanly_on_interrupt(cli):
    demo = subprocess.Popen([PROGRAM, "demo", "--seconds", "600"],
                            cwd=cli.folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    run = cli.folder / "paceline-demo/cluster/timeline.jsonl"
    assert wait_for(run.exists, "the cluster", demo)
    demo.send_signal(signal.SIGINT)
    _, said = demo.communicate()
    assert demo.returncode == 130 and "interrupted" in said
    left = subprocess.run(["pgrep", "-f", str(cli.folder)],
                          capture_output=True, text=True).stdout
    assert left == "", left


COMPLETED = [
    ("paceline tr", {"train"}),
    ("paceline train sof", {"softmax"}),
    ("paceline train softmax --mode a", {"async"}),
    ("paceline train softmax --optimi", {"--optimizer"}),
    ("paceline launch --hosts a,b -- train len", {"lenet"}),
    ("paceline data st", {"stats"}),
]


def test_bash_completes_commands_models_flags_and_values(cli):
    (cli.folder / "complete").write_text(text_of(cli, "docs", "bash"))
    ask = ('. ./complete; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - '
           '1)); _paceline; printf "%s\\n" "${COMPREPLY[@]}"')
    for line, expected in COMPLETED:
        out = subprocess.run(["bash", "-uc", ask, "bash", line], text=True,
                             cwd=cli.folder, capture_output=True, check=True)
        assert set(out.stdout.split()) == expected, line


def test_zsh_completes_commands_models_flags_and_values(cli):
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed")
    (cli.folder / "_paceline").write_text(text_of(cli, "docs", "zsh"))
    # A shell in a terminal, as a person has it; Ctrl-G completes the line as
    # a tab does, and shows it.
    leader, follower = pty.openpty()
    shell = subprocess.Popen(["zsh", "-f", "-i"], cwd=cli.folder,
                             stdin=follower, stdout=follower, stderr=follower,
                             env={**cli.env, "TERM": "dumb"}, close_fds=True,
                             start_new_session=True)
    os.close(follower)

    def answer(typed, pattern):
        os.write(leader, typed.encode())
        said = b""
        while not (found := re.search(pattern, said)):
            said += os.read(leader, 4096)
        return found[1].decode()

    answer("autoload -U compinit; compinit -u -D; . ./_paceline; show() { "
           "zle complete-word; print -r -- \"LINE:$BUFFER:\"; BUFFER='' }; "
           "zle -N show; bindkey '^G' show; print REA''DY\n", b"(READY)")
    for line, expected in COMPLETED:
        shown = answer(line + "\a", rb"LINE:([^:$]*):")
        assert shown.split()[-1] == expected.copy().pop(), (line, shown)
    os.close(leader)
    shell.kill()
    shell.wait()


def test_each_command_has_a_manual_page_without_warnings(cli):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for command in commands(cli):
        page = text_of(cli, "docs", "man", command)
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"],
                              input=page, capture_output=True, text=True)
        assert done.stderr == "", (command, done.stderr)
