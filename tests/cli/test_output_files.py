"""Files that the user names: -o, --merge, --csv, --picture, convert.  They go
where the name leads, as with a shell's `>`: devices and FIFOs are written to,
links stay.

No test names a device or link in /dev: a program that replaces what it should
write to would damage the machine.
"""

import os
import stat
import subprocess

import pytest

from conftest import SMALL, listing

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make "
                                "a device, and can replace one")


@pytest.fixture
def run(cli):
    cli.train(*SMALL, "--run", "r", "--profile", "--eval-every", "never")
    return "r"


@pytest.fixture
def examples(cli):
    path = cli.folder / "a.libsvm"
    path.write_text("1 1:1 5:2\n0 2:1\n" * 200)
    return path


def report(path):
    return ["report", "r", "-o", path]


def merge(path):
    return ["profile", "r", "--merge", path]


def convert(path):
    return ["data", "convert", "libsvm:a.libsvm", f"libsvm:{path}"]


def csv(path):
    return ["monitor", "--every", "0.05", "--csv", path, "--", "true"]


def export(path):
    return ["export", "r", "-o", path]


def plan(path):
    return ["plan", "--from", "r", "--workers", "2", "-o", path]


def picture(path):
    return ["data", "stats", "digits", "--picture", path]


WRITERS = [report, merge, convert, csv, export, plan, picture]
every_writer = pytest.mark.parametrize("writer", WRITERS)


def make_device(path, minor):
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        pytest.skip("no devices on this file system")


@needs_root
@every_writer
def test_a_device_stays_a_device(cli, run, examples, writer):
    make_device(cli.folder / "null", 3)
    before = listing(cli.folder)
    cli.ok(*writer("null"))
    info = os.stat(cli.folder / "null")
    assert stat.S_ISCHR(info.st_mode)
    assert info.st_rdev == os.makedev(1, 3)
    assert listing(cli.folder) == before


@every_writer
def test_a_fifo_is_written_to(cli, run, examples, writer):
    fifo = cli.folder / "fifo"
    os.mkfifo(fifo)
    cli.ok(*writer("plain"))
    expected = (cli.folder / "plain").read_bytes()
    with open(cli.folder / "read", "wb") as file:
        cat = subprocess.Popen(["cat", str(fifo)], stdout=file)
        cli.ok(*writer("fifo"))
        cat.wait(timeout=60)
    out = (cli.folder / "read").read_bytes()
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)
    if writer == csv:  # another moment
        assert out.splitlines()[0] == expected.splitlines()[0]
    elif writer == report:  # it names the time it was made
        assert len(out) == len(expected) and out.endswith(b"</html>\n")
    else:
        assert out == expected


@every_writer
def test_links_stay_and_their_targets_are_replaced(cli, run, examples, writer):
    target = cli.folder / "folder/target"
    target.parent.mkdir()
    link = cli.folder / "link"
    link.symlink_to("folder/target")
    cli.ok(*writer("link"))  # it led nowhere
    assert link.is_symlink() and target.is_file()
    first = target.read_bytes()
    assert first
    target.write_text("old")
    target.chmod(0o640)
    cli.ok(*writer("link"))
    assert link.is_symlink() and not target.is_symlink()
    assert len(target.read_bytes()) > 3
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert listing(target.parent) == ["target"]


@every_writer
def test_an_unwritable_output_is_one_sentence(cli, run, examples, writer):
    (cli.folder / "folder").mkdir()
    before = listing(cli.folder)
    for path, says in [("folder", "folder is a folder; name a file in it"),
                       ("none/a", "there is no folder none/")]:
        result = cli.run(*writer(path))
        assert result.code == 1, result
        assert says in result.err.splitlines()[-1], result
    assert listing(cli.folder) == before


@needs_root
@every_writer
def test_a_full_device_is_one_sentence(cli, run, examples, writer):
    make_device(cli.folder / "full", 7)
    before = listing(cli.folder)
    result = cli.run(*writer("full"))
    assert result.code == 1, result
    assert "full: No space left on device" in result.err.splitlines()[-1]
    assert stat.S_ISCHR(os.stat(cli.folder / "full").st_mode)
    assert listing(cli.folder) == before


@needs_root
@pytest.mark.parametrize("writer", [report, merge, convert, export, plan,
                                    picture])
def test_a_full_disk_leaves_the_old_file(cli, run, examples, writer):
    disk = cli.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "disk",
                              str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("cannot mount a small disk")
    try:
        if writer == convert:
            examples.write_text("1 1:1 5:2\n0 2:1\n" * 20000)
        (disk / "out").write_text("old")
        result = cli.run(*writer("disk/out"))
        assert result.code == 1, result
        assert "No space left on device; free some space" in result.err, result
        assert (disk / "out").read_text() == "old"
        assert listing(disk) == ["out"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_files_of_a_report_follow_links(cli, run):
    files = cli.folder / "files"
    cli.run("report", run, "-o", "a.html", "--files", "files")
    table = sorted(files.glob("*.csv"))[0]
    table.rename(cli.folder / "kept")
    table.symlink_to("../kept")
    (cli.folder / "kept").write_text("old")
    cli.run("report", run, "-o", "a.html", "--files", "files")
    assert table.is_symlink()
    assert len((cli.folder / "kept").read_text()) > 3


@pytest.fixture(params=["-", "stdout"])
def name(request, cli):
    """Names of standard output: the link is what /dev/stdout is."""
    (cli.folder / "stdout").symlink_to("/proc/self/fd/1")
    yield request.param
    assert os.readlink(cli.folder / "stdout") == "/proc/self/fd/1"


def test_standard_output_holds_the_page_alone(cli, run, name):
    result = cli.ok(*report(name))
    assert result.out.startswith("<!") and result.out.endswith("</html>\n")
    assert "1 run," in result.err
    assert not (cli.folder / "-").exists()


def test_standard_output_holds_the_examples_alone(cli, examples, name):
    result = cli.ok(*convert(name))
    assert result.out == examples.read_text()
    assert "400 examples" in result.err


def test_a_redirected_standard_output_is_appended_to(cli, examples, name):
    """The file behind it is not replaced: the shell has it open."""
    out = cli.folder / "out"
    with open(out, "wb") as file:
        file.write(b"before\n")
        file.flush()
        cli.ok(*convert(name), stdout=file)
        file.seek(0, os.SEEK_END)
        file.write(b"after\n")
    assert out.read_text() == f"before\n{examples.read_text()}after\n"


def test_a_key_is_neither_printed_nor_put_elsewhere(cli):
    cli.refused(2, "keys", "-o", "-", says="keys are not printed")
    os.mkfifo(cli.folder / "fifo")
    cli.refused(2, "keys", "-o", "fifo", says="already exists")
    (cli.folder / "link").symlink_to("target")
    cli.refused(2, "keys", "-o", "link", says="already exists")
