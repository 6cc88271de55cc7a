"""Run the commands of docs/guide.md, as a reader would type them."""

import re
import shlex
import urllib.request

from conftest import ROOT

HOSTS = "a,b,c"


def guide_commands():
    """The lines of the blocks marked "sh"."""
    text = (ROOT / "docs/guide.md").read_text()
    return [line for block in re.findall(r"^```sh\n(.*?)^```", text,
                                         re.M | re.S)
            for line in block.splitlines()]


def look_at_page(cli, words):
    """The page does not end by itself: its URL answers, then it is ended."""
    page = cli.start(*words)
    url = page.stdout.readline().decode().strip()
    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor())
    with opener.open(url) as answer:
        assert b"lenet" in answer.read()
    page.terminate()
    page.communicate()


def follow(cli, hosts, ssh, reach=None):
    """All commands in order; `ssh` reaches the `hosts`, from where `reach` runs
    the program (default: here)."""
    done = []
    for line in guide_commands():
        words = shlex.split(line)
        assert words[0] == "paceline", line
        words = [",".join(hosts) if word == HOSTS else word
                 for word in words[1:]]
        if "--hosts" in words:
            words[1:1] = ["--ssh", ssh]
        if words[0] == "page":
            look_at_page(cli, words)
        elif "--hosts" in words and reach is not None:
            reach(*words)
        else:
            cli.ok(*words)
        done.append(words[0])
    return done
