"""Debian systems that run in a network namespace: for dist/test-start and dist/test-closed.

1. A root of a suite is made once, by mmdebstrap, with what `apt` will want to download, and unpacked for each system.
2. systemd-nspawn boots it with systemd as process 1, or starts it without.
3. A command is typed at a terminal of the system; every question is answered with yes.
4. Which commands are typed, the pages say.
"""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

from scene import PATIENCE_S, run

PACKAGES = "apt,systemd,systemd-sysv,init-system-helpers,procps,sudo"


def kept_root(out, suite):
    """Step 1: the tar of a suite's root."""
    kept = f"{out}/parts/suites/{suite}-booted.tar"
    if not os.path.exists(kept):
        os.makedirs(os.path.dirname(kept), exist_ok=True)
        # The package recommends nftables: apt has it at hand, for there is no network to download by.
        download = 'chroot "$1" apt-get install -qq --download-only -o APT::Install-Recommends=true nftables'
        run("mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", f"--customize-hook={download}",
            "--skip=cleanup/apt/lists", "--skip=cleanup/apt/cache", suite, f"{kept}.new.tar")
        os.rename(f"{kept}.new.tar", kept)
    return kept


def unpack(kept, root, name, links):
    """A root of one's own, whose interfaces systemd-networkd configures once it boots."""
    os.makedirs(root)
    run("tar", "-xf", kept, "-C", root, "--exclude=./dev/*")
    write(f"{root}/etc/hostname", f"{name}\n")
    write(f"{root}/etc/hosts", f"127.0.0.1 localhost {name}\n")
    for link, address, router, metric in links:
        route = f"[Route]\nGateway={router}\nMetric={metric}\n" if router else ""
        write(f"{root}/etc/systemd/network/{link}.network",
              f"[Match]\nName={link}\n[Network]\nAddress={address}\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes\n{route}")
    wants = f"{root}/etc/systemd/system/multi-user.target.wants"
    os.makedirs(wants, exist_ok=True)
    os.symlink("/lib/systemd/system/systemd-networkd.service", f"{wants}/systemd-networkd.service")


def write(file, text):
    with open(file, "w") as to:
        to.write(text)


class Machine:
    """Step 2: a root that runs. Its network namespace is the scene's."""

    def __init__(self, scene, name, root, systemd):
        self.scene, self.root, self.systemd = scene, root, systemd
        how = ["--boot"] if systemd else ["--as-pid2"]
        what = [] if systemd else ["/bin/sleep", "infinity"]
        nspawn = ["systemd-nspawn", "--quiet", f"--directory={root}", *how, "--register=no", "--keep-unit", "--capability=all",
                  f"--machine={scene.tag}-{name}", f"--hostname={name}",
                  f"--network-namespace-path=/run/netns/{scene.space(name)}",
                  "--bind=/dev/net/tun", "--link-journal=no", "--console=pipe", *what]
        # A machine of a test's own has the second version of cgroups alone, as Debian boots.
        alone = ('umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup && mkdir -p "/sys/fs/cgroup/$1" && '
                 'echo $$ >"/sys/fs/cgroup/$1/cgroup.procs" && shift && exec "$@"')
        self.log = open(f"{root}.log", "a")
        self.process = subprocess.Popen(["unshare", "--mount", "sh", "-c", alone, "sh", f"{scene.tag}-{name}", *nspawn], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log,
                                        env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"})
        scene.machines.append(self)
        self.first = self.wait_for("process 1", self.find_first)

    def find_first(self):
        """Its process 1, as this system counts it."""
        if self.process.poll() is not None:
            sys.exit(f"error: {self.root} did not start: see {self.log.name}")
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            for child in file.read().split():
                with contextlib.suppress(FileNotFoundError), open(f"/proc/{child}/status") as status:
                    if re.search(r"^NSpid:\t\d+\t1$", status.read(), re.M):
                        return int(child)
        return None

    def wait_until_booted(self):
        self.wait_for("systemd to have booted", lambda: self.ask("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))
        return self

    def has_a_way(self):
        """Whether it has a default route of IPv4."""
        with open(f"/proc/{self.first}/net/route") as file:
            return any(line.split()[1] == "00000000" for line in file.readlines()[1:])

    def wait_for(self, what, look):
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            found = look()
            if found:
                return found
            time.sleep(0.05)
        sys.exit(f"error: waited {PATIENCE_S} s for {what} in {self.root}")

    def enter(self, *command):
        return ["nsenter", "-t", str(self.first), "--all", "env", "-i", "--chdir=/root", "TERM=dumb", "HOME=/root",
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *command]

    def ask(self, *command):
        """What a program says there, whatever its status."""
        return subprocess.run(self.enter(*command), text=True, capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)

    def type(self, command):
        """Step 3: what the terminal showed; the command must succeed."""
        print(f"  {os.path.basename(self.root)}# {shortened(command)}", flush=True)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execvp("nsenter", self.enter("sh", "-c", command))
        shown, answered, end = b"", 0, time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
            asked = len(re.findall(rb"\[[yY]/[nN]\]", shown))
            os.write(terminal, b"y\n" * (asked - answered))
            answered = asked
        else:
            os.kill(pid, signal.SIGKILL)
        text, status = shown.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(terminal)
        if status:
            sys.exit(f"error: {shortened(command)}: status {status}:\n{text}")
        return text

    def cut(self):
        """The power goes."""
        self.end(signal.SIGKILL)

    def end(self, what):
        """Process 1 is told, and the machine is gone."""
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(self.first, what)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.scene.machines.remove(self)


def shortened(command):
    return re.sub(r"(hwr1:.{8})\S+", r"\1…", command)


def typed(version):
    """Step 4: the commands of the quick start, as they stand in its pages: by package, by binary, on the server, at home."""
    with open("docs/install.md") as page:
        install = page.read()
    with open("docs/start.md") as page:
        lines = [line.strip() for line in page if line.startswith("    ")]
    by = {"deb": rf"`((?:sudo )?apt install \./hawser_{re.escape(version)}_amd64\.deb)`",
          "binary": rf"`((?:sudo )?install hawser-{re.escape(version)}-x86_64 /usr/local/bin/hawser)`"}
    found = {kind: re.findall(pattern, install) for kind, pattern in by.items()}
    assert all(len(commands) == 1 for commands in found.values()), f"docs/install.md: {found}"
    serve, join = lines
    assert join.endswith(" hwr1:…"), f"docs/start.md: {lines}"
    return {**{kind: commands[0] for kind, commands in found.items()}, "serve": serve, "join": join.removesuffix("hwr1:…")}


def token_in(shown):
    tokens = set(re.findall(r"hwr1:[A-Za-z0-9_-]+", shown))
    assert len(tokens) == 1, f"tokens: {tokens} in\n{shown}"
    return tokens.pop()


def put(file, root):
    shutil.copy(file, f"{root}/root/")
