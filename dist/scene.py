"""What lies between a server and a home, and in the world: for dist/test-start and dist/test-closed.

```text
   LAN host -- lan0 HOME one -- 20 Mbit/s --------------- ISP -- eth0 SERVER
                         two -- 10 Mbit/s -- NAT -------- ISP -- WORLD
```
Each is a network namespace; server and home are booted there (dist/booted.py).
"""

import contextlib
import ctypes
import http.server
import json
import os
import subprocess
import sys
import threading

# How long a system may take to boot, a command to end, and a page to come, in seconds.
PATIENCE_S = 90
PAGE = bytes(range(256)) * 16_384
WORLD = "203.0.113.80"
# One of those that `hawser join` asks whether the internet answers.
RESOLVER = "1.1.1.1"
SERVER = "198.51.100.2"
# What systemd-networkd is told where it runs: name, address, router and metric.
HOME_LINKS = [("one", "192.0.2.2/30", "192.0.2.1", 100), ("two", "192.168.8.2/24", "192.168.8.1", 200),
              ("lan0", "192.168.50.1/24", None, None)]
SERVER_LINKS = [("eth0", f"{SERVER}/30", "198.51.100.1", 100)]
RATES = {"one": "20mbit", "two": "10mbit"}


def run(*command, **more):
    """What a program prints; it must succeed."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S * 8, **more)
    if done.returncode:
        sys.exit(f"error: {' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Scene:
    """The namespaces, which live as long as it does, and the machines in them."""

    def __init__(self):
        self.tag = f"hawser{os.getpid()}"
        self.machines = []
        self.names = []
        self.visitors = []
        self.servers = []

    def __enter__(self):
        for name in ("isp", "nat", "world", "lan"):
            self.add(name)
        self.lay("isp", "w0", "203.0.113.1/24", "world", "eth0", f"{WORLD}/24")
        self.lay("isp", "n0", "100.64.0.1/30", "nat", "up0", "100.64.0.2/30")
        self.ip("world", f"addr add {RESOLVER}/32 dev lo")
        self.ip("isp", f"route add {RESOLVER} via {WORLD}")
        for name, router in (("world", "203.0.113.1"), ("nat", "100.64.0.1")):
            self.ip(name, f"route add default via {router}")
        for name in ("isp", "nat"):
            self.inside(name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.nft("nat", 'table ip nat { chain out { type nat hook postrouting priority srcnat; oifname "up0" masquerade; }; }')
        self.serve()
        return self

    def __exit__(self, *_):
        for machine in list(self.machines):
            machine.cut()
        for server in self.servers:
            server.shutdown()
        for name in list(self.names):
            self.drop(name)

    def space(self, name):
        return f"{self.tag}-{name}"

    def add(self, name):
        run("ip", "netns", "add", self.space(name))
        self.names.append(name)
        self.ip(name, "link set lo up")

    def drop(self, name):
        run("ip", "netns", "del", self.space(name))
        self.names.remove(name)

    def ip(self, name, words):
        return run("ip", "-n", self.space(name), *words.split())

    def inside(self, name, *command, **more):
        return run("ip", "netns", "exec", self.space(name), *command, **more)

    def nft(self, name, script):
        self.inside(name, "nft", "-f", "-", input=script)

    def lay(self, one, one_link, one_address, other, other_link, other_address):
        """A link between two namespaces. An end without an address is configured by whoever boots there."""
        run("ip", "link", "add", one_link, "netns", self.space(one), "type", "veth", "peer", "name", other_link,
            "netns", self.space(other))
        for name, link, address in ((one, one_link, one_address), (other, other_link, other_address)):
            if address:
                self.ip(name, f"addr add {address} dev {link}")
            self.ip(name, f"link set {link} up")

    def lay_server(self, addresses):
        self.add("server")
        self.lay("isp", "s0", "198.51.100.1/30", "server", "eth0", None)
        self.configure("server", SERVER_LINKS, addresses)

    def lay_home(self, addresses):
        """The home's links; laid anew for each boot, as a network is empty then."""
        if "home" in self.names:
            self.drop("home")
        self.add("home")
        self.lay("isp", "one", "192.0.2.1/30", "home", "one", None)
        self.lay("nat", "two", "192.168.8.1/24", "home", "two", None)
        self.lay("lan", "eth0", "192.168.50.2/24", "home", "lan0", None)
        self.ip("lan", "route add default via 192.168.50.1")
        for name, link in (("isp", "one"), ("nat", "two"), ("home", "one"), ("home", "two")):
            self.inside(name, "tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", RATES[link], "burst", "32k", "latency", "50ms")
        self.configure("home", HOME_LINKS, addresses)

    def configure(self, name, links, addresses):
        """What systemd-networkd does where it runs."""
        for link, address, router, metric in links if addresses else []:
            self.ip(name, f"addr add {address} dev {link}")
            if router:
                self.ip(name, f"route add default via {router} dev {link} metric {metric}")

    def serve(self):
        """The world's web server, and what `join` asks; whoever asks for the page is remembered."""
        visitors = self.visitors

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                visitors.append(self.client_address[0])
                self.send_response(200)
                self.send_header("Content-Length", str(len(PAGE)))
                self.end_headers()
                self.wfile.write(PAGE)

            def log_message(self, *_):
                pass

        with entered(self.space("world")):
            self.servers = [http.server.ThreadingHTTPServer(("", port), Page) for port in (80, 443)]
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def load_page(self):
        """The LAN host loads a page; what each uplink took in of it, in bytes."""
        before = self.taken()
        page = subprocess.run(["ip", "netns", "exec", self.space("lan"), "curl", "-sS", "--max-time", str(PATIENCE_S), f"http://{WORLD}/"],
                              stdout=subprocess.PIPE, check=True).stdout
        assert page == PAGE, f"{len(page)} bytes of {len(PAGE)}, or others"
        assert self.visitors[-1] == SERVER, f"the world saw {self.visitors[-1]}, and not the server"
        after = self.taken()
        return {link: after[link] - before[link] for link in after}

    def taken(self):
        links = json.loads(self.ip("home", "-j -s link show"))
        return {link["ifname"]: link["stats64"]["rx"]["bytes"] for link in links if link["ifname"] in RATES}


@contextlib.contextmanager
def entered(space):
    """Sockets that are opened meanwhile are of that network namespace."""
    here, there = os.open("/proc/self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{space}", os.O_RDONLY)
    setns(there)
    try:
        yield
    finally:
        setns(here)
        os.close(here)
        os.close(there)


def setns(namespace):
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(namespace, 0x40000000):
        raise OSError(ctypes.get_errno(), "setns")
