"""The data folder: one writer, a file system that can be trusted, room."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anvilmq_broker.domain.errors import StartRefused
from anvilmq_broker.store.libsql import volume
from tests.unit.store.conftest import OpenStore

HOLDER = """
import sys
from pathlib import Path
from anvilmq_broker.store.libsql.volume import Lock
lock = Lock(Path(sys.argv[1]), 0)
print("held", flush=True)
sys.stdin.read()
"""
MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:30 / /srv rw - nfs4 server:/export rw
31 30 8:1 / /srv/disk rw - xfs /dev/sda1 rw
32 27 0:31 / /run rw - tmpfs tmpfs rw
33 27 0:32 / /mnt/a\\040b\\011c rw - fuse.sshfs me@there rw
34 27 0:33 / /over rw - ext4 /dev/sdb1 rw
35 34 0:34 / /over rw - cifs //server/share rw
a line that is none
"""


@contextmanager
def held_by_another_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the folder's lock; killed at the end."""
    command = [sys.executable, "-c", HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


# ------------------------------------------------------------------------------------------------- lock


def test_the_refusal_of_a_second_broker_names_the_first(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path) as process, pytest.raises(StartRefused) as caught:
        volume.Lock(tmp_path, 0)
    assert caught.value.reason == "data_folder_in_use"
    assert f"process {process.pid} on {os.uname().nodename}" in caught.value.message
    assert "ANVILMQ_LOCK_WAIT" in caught.value.message


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
        volume.Lock(tmp_path, 0).close()


def test_a_wait_for_the_lock_ends_when_its_holder_does(tmp_path: Path) -> None:
    waits: list[float] = []
    with held_by_another_process(tmp_path) as process:

        def wait(seconds: float) -> None:
            waits.append(seconds)
            process.kill()
            process.wait()

        volume.Lock(tmp_path, 60, sleep=wait).close()
    assert len(waits) == 1


def test_a_wait_for_the_lock_has_an_end(tmp_path: Path) -> None:
    held = volume.Lock(tmp_path, 0)
    passed = 0.0

    def wait(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    with pytest.raises(StartRefused):
        volume.Lock(tmp_path, 2, sleep=wait, monotonic=lambda: passed)
    assert passed == pytest.approx(2, abs=0.2)
    held.close()


def test_a_lock_given_up_is_free_and_may_be_given_up_again(tmp_path: Path) -> None:
    for _ in range(2):
        lock = volume.Lock(tmp_path, 0)
        lock.close()
        lock.close()


def test_a_store_keeps_a_second_one_out_until_it_is_stopped(open_store: OpenStore) -> None:
    first, second = open_store(), open_store()
    first.start()
    with pytest.raises(StartRefused, match=f"process {os.getpid()}"):
        second.start()
    first.stop()
    second.start()


def test_a_process_does_not_hand_the_lock_to_its_children(tmp_path: Path) -> None:
    lock = volume.Lock(tmp_path, 0)
    command = [sys.executable, "-c", "print('up', flush=True); input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, close_fds=False) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        lock.close()
        volume.Lock(tmp_path, 0).close()
        child.kill()


# ----------------------------------------------------------------------------------------------- folder


def test_the_folder_is_made_for_its_user_alone(tmp_path: Path) -> None:
    volume.prepare(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "db").stat().st_mode & 0o777 == 0o700
    volume.prepare(tmp_path / "a" / "b")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StartRefused, match="give ANVILMQ_DATA_DIR a folder") as caught:
        volume.prepare(tmp_path / "file" / "data")
    assert caught.value.reason == "data_folder_unusable"


def test_a_folder_that_is_not_writable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The user of a test may be root, who may write anywhere: so the answer of the system is put in its mouth.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StartRefused, match="is not writable for user") as caught:
        volume.prepare(tmp_path)
    assert caught.value.reason == "data_folder_unusable"


def test_a_lock_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / volume.LOCK_FILE).mkdir()
    with pytest.raises(StartRefused, match="cannot make") as caught:
        volume.Lock(tmp_path, 0)
    assert caught.value.reason == "data_folder_unusable"


# ------------------------------------------------------------------------------------------ file systems


@pytest.mark.parametrize("path", ["/var/lib/anvilmq", "/srv/disk/data", "/srvx"])
def test_a_local_file_system_is_taken(path: str) -> None:
    assert volume.check_mount(Path(path), "", MOUNTS) is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/srv/data", "nfs4"), ("/srv", "nfs4"), ("/mnt/a b\tc/data", "fuse.sshfs"), ("/over/data", "cifs")],
)
def test_a_network_file_system_is_refused_unless_it_is_named(path: str, kind: str) -> None:
    with pytest.raises(StartRefused, match=f"ANVILMQ_ALLOW_FILESYSTEM={kind}") as caught:
        volume.check_mount(Path(path), "", MOUNTS)
    assert caught.value.reason == "file_system_unsafe"
    with pytest.raises(StartRefused):
        volume.check_mount(Path(path), "other", MOUNTS)
    assert volume.check_mount(Path(path), kind, MOUNTS) is None


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "fuse", "fuse.new", "9p", "ceph", "glusterfs", "lustre"]
)
def test_every_kind_without_trustworthy_locks_or_flushes_is_refused(kind: str) -> None:
    with pytest.raises(StartRefused):
        volume.check_mount(Path("/data"), "", f"30 27 0:30 / / rw - {kind} what rw")


def test_a_file_system_in_memory_is_warned_of() -> None:
    assert "nothing survives a restart" in (volume.check_mount(Path("/run/anvilmq"), "", MOUNTS) or "")


def test_the_real_mounts_of_this_machine_can_be_read(tmp_path: Path) -> None:
    volume.check_mount(tmp_path, "")


# ------------------------------------------------------------------------------------------------- room


@pytest.mark.parametrize(
    ("total", "floor"),
    [(0, 128 << 20), (1 << 30, 128 << 20), (10 << 30, (10 << 30) // 20), (1 << 50, 2 << 30)],
)
def test_the_floor_is_a_twentieth_within_bounds(total: int, floor: int) -> None:
    assert volume.floor_bytes(total) == floor


def test_space_is_what_the_system_says(tmp_path: Path) -> None:
    free, total = volume.space(tmp_path)
    assert 0 < free < total


def test_ballast_is_real_blocks_until_it_is_given_up(tmp_path: Path) -> None:
    ballast = volume.Ballast(tmp_path, 1 << 20)
    ballast.make()
    ballast.make()
    assert (tmp_path / volume.BALLAST_FILE).stat().st_blocks * 512 >= 1 << 20
    assert ballast.drop()
    assert not ballast.drop()


def test_ballast_of_no_size_is_none(tmp_path: Path) -> None:
    volume.Ballast(tmp_path, 0).make()
    assert list(tmp_path.iterdir()) == []


def test_ballast_that_does_not_fit_is_none(tmp_path: Path) -> None:
    volume.Ballast(tmp_path, 1 << 60).make()
    assert list(tmp_path.iterdir()) == []
