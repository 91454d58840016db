# SPDX-License-Identifier: Apache-2.0
"""Runs a file for Mininet without Mininet, and prints its network as JSON.

export.py FILE TOPO ARGUMENTS...: modules of Mininet are replaced by what only notes nodes and links. Commands
of hosts, and of this machine, do nothing. TOPO names one of the file's topos, or a class of Topo, and
its parameters behind commas.
"""

import builtins
import functools
import importlib.abc
import importlib.machinery
import json
import os
import subprocess
import sys
import time
import traceback
import types

path = os.path.abspath(sys.argv[1])
wanted, *parameters = sys.argv[2].split(",")
parameters = [int(p) if p.lstrip("-").isdigit() else p for p in parameters]
limits = ("bw", "delay", "loss", "jitter", "max_queue_size")
notes = []
started = []


class Enough(BaseException):
    """The file has built its network."""


def line():
    """The line of the file that is running."""
    frame, found = sys._getframe(), 0
    while frame:
        if os.path.abspath(frame.f_code.co_filename) == path:
            found = frame.f_lineno
            break
        frame = frame.f_back
    return found


def note(text):
    entry = {"line": line(), "text": text}
    if entry not in notes:
        notes.append(entry)


class Anything(type):
    """A class that has all attributes."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class Nothing(metaclass=Anything):
    """Whatever is not about the network: it takes all, and does nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()

    def __call__(self, *args, **kwargs):
        return Nothing()

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0

    def __contains__(self, item):
        return False

    def __getitem__(self, key):
        return Nothing()

    def __setitem__(self, key, value):
        pass

    def __str__(self):
        return ""

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def __int__(self):
        return 0

    def __float__(self):
        return 0.0

    def __bool__(self):
        return False

    def __add__(self, other):
        return other

    __radd__ = __add__

    def __mod__(self, other):
        return ""


class Node(str):
    """A node: its name, as Topo has it, and an object, as Mininet has it."""

    def __new__(cls, name="", *args, **params):
        self = super().__new__(cls, name)
        self.params, self.name = params, str(name)
        return self

    def cmd(self, *args, **kwargs):
        command = " ".join(str(a) for a in args)
        note("%s runs %r: write it under programs" % (self.name, command))
        return ""

    cmdPrint = sendCmd = popen = pexec = cmd

    def IP(self, *args, **kwargs):
        return str(self.params.get("ip") or "0.0.0.0").split("/")[0]

    def MAC(self, *args, **kwargs):
        return str(self.params.get("mac") or "00:00:00:00:00:00")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class Topo:
    """mininet.topo.Topo, as far as it holds nodes and links."""

    def __init__(self, *args, **params):
        self._nodes, self._links = {}, []
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self.build(*args, **params)

    def _ready(self):
        if "_nodes" not in self.__dict__:
            self._nodes, self._links = {}, []
            self.hopts, self.sopts, self.lopts = {}, {}, {}

    def build(self, *args, **params):
        pass

    def addNode(self, name, cls=None, **opts):
        self._ready()
        node = Node(name, **opts)
        self._nodes[str(name)] = {
            "name": str(name), "line": line(), "switch": bool(opts.get("isSwitch")),
            "ip": str(opts.get("ip") or ""), "object": node,
        }
        return node

    def addHost(self, name, cls=None, **opts):
        self._ready()
        return self.addNode(name, **{**self.hopts, **opts})

    def addSwitch(self, name, cls=None, **opts):
        self._ready()
        return self.addNode(name, **{**self.sopts, **opts, "isSwitch": True})

    def addLink(self, node1, node2, port1=None, port2=None, key=None, **opts):
        self._ready()
        for node in node1, node2:
            if str(node) not in self._nodes:
                raise KeyError("addLink: no node %s" % node)
        opts = {**self.lopts, **opts}
        link = {"a": str(node1), "b": str(node2), "line": line()}
        for name, value in opts.items():
            if name in limits:
                if value is not None:
                    link[name] = str(value)
            elif name not in ("cls", "intf", "intfName1", "intfName2", "addr1", "addr2", "fast",
                              "use_htb", "key"):
                note("%s of a link is left out" % name)
        self._links.append(link)
        return Nothing()

    def nodes(self, sort=True):
        self._ready()
        return [n["object"] for n in self._nodes.values()]

    def _kind(self, switch):
        return [n["object"] for n in self._nodes.values() if n["switch"] == switch]

    def hosts(self, sort=True):
        self._ready()
        return self._kind(False)

    def switches(self, sort=True):
        self._ready()
        return self._kind(True)

    def links(self, *args, **kwargs):
        self._ready()
        return [(l["a"], l["b"]) for l in self._links]

    def iterLinks(self, *args, **kwargs):
        return iter(self.links())

    def isSwitch(self, name):
        return self._nodes[str(name)]["switch"]

    def nodeInfo(self, name):
        return self._nodes[str(name)]["object"].params

    def linkInfo(self, *args):
        return {}

    def port(self, *args):
        return (0, 0)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class SingleSwitchTopo(Topo):
    def build(self, k=2, **opts):
        switch = self.addSwitch("s1")
        for i in range(1, k + 1):
            self.addLink(self.addHost("h%d" % i), switch)


class SingleSwitchReversedTopo(SingleSwitchTopo):
    pass


class MinimalTopo(SingleSwitchTopo):
    def build(self):
        super().build(2)


class LinearTopo(Topo):
    def build(self, k=2, n=1, **opts):
        last = None
        for i in range(1, k + 1):
            switch = self.addSwitch("s%d" % i)
            for j in range(1, n + 1):
                name = "h%d" % i if n == 1 else "h%ds%d" % (j, i)
                self.addLink(self.addHost(name), switch)
            if last:
                self.addLink(switch, last)
            last = switch


class TreeTopo(Topo):
    def build(self, depth=1, fanout=2):
        self.count = [0, 0]
        self.grow(depth, fanout)

    def grow(self, depth, fanout):
        if depth == 0:
            self.count[0] += 1
            return self.addHost("h%d" % self.count[0])
        self.count[1] += 1
        node = self.addSwitch("s%d" % self.count[1])
        for _ in range(fanout):
            self.addLink(node, self.grow(depth - 1, fanout))
        return node


class Mininet(Topo):
    """mininet.net.Mininet: a topology, and what is done to its nodes by name."""

    def __init__(self, topo=None, *args, **params):
        self._nodes, self._links = {}, []
        self.hopts, self.sopts, self.lopts = {}, {}, {}
        self.topo = topo
        if isinstance(topo, Topo):
            topo._ready()
            self._nodes, self._links = dict(topo._nodes), list(topo._links)
        if isinstance(params.get("link"), functools.partial):  # what all links have by default
            self.lopts = params["link"].keywords
            self._links = [{**{k: str(self.lopts[k]) for k in limits if k in self.lopts}, **l}
                           for l in self._links]
        started.append(self)

    def addNAT(self, *args, **params):
        note("a NAT is left out")
        return Nothing()

    def addController(self, *args, **params):
        return Nothing()

    def get(self, *names):
        found = [self._nodes[str(n)]["object"] if str(n) in self._nodes else Nothing()
                 for n in names]
        return found[0] if len(found) == 1 else found

    getNodeByName = __getitem__ = get

    def addLink(self, node1, node2, *args, **opts):
        for node in node1, node2:
            if isinstance(node, Nothing):
                note("a link to what is no host and no switch is left out")
                return Nothing()
        return super().addLink(node1, node2, **opts)

    @property
    def hosts(self):
        return self._kind(False)

    @property
    def switches(self):
        return self._kind(True)

    def items(self):
        return [(n, x["object"]) for n, x in self._nodes.items()]

    def keys(self):
        return list(self._nodes)

    def __iter__(self):
        return iter(self._nodes)

    def __len__(self):
        return len(self._nodes)

    def __contains__(self, name):
        return str(name) in self._nodes

    def linksBetween(self, *args):
        return []

    def stop(self, *args):
        raise Enough

    def pingAll(self, *args, **kwargs):
        note("pingAll is left out: write programs")
        return 0.0

    def iperf(self, *args, **kwargs):
        note("iperf is left out: write programs")
        return ["0 bits/sec", "0 bits/sec"]


known = {
    "Topo": Topo, "Mininet": Mininet, "MininetWithControlNet": Mininet, "Containernet": Mininet,
    "MininetCluster": Mininet,
    "SingleSwitchTopo": SingleSwitchTopo, "SingleSwitchReversedTopo": SingleSwitchReversedTopo,
    "MinimalTopo": MinimalTopo, "LinearTopo": LinearTopo, "TreeTopo": TreeTopo,
    "TreeNet": lambda depth=1, fanout=2, **params: Mininet(TreeTopo(depth=depth, fanout=fanout)),
    "irange": lambda first, last: range(first, last + 1),
    "natural": lambda text: text, "naturalSeq": lambda text: text,
    "customClass": lambda *args: Nothing, "quietRun": lambda *args, **kwargs: "",
    "specialClass": lambda cls, *args, **kwargs: cls,
    "ipStr": str, "macColonHex": str, "dumpNodeConnections": lambda *args: None,
}


class Module(types.ModuleType):
    """A module of Mininet: what it is asked for that is not known is a class that does nothing."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = known.get(name)
        if value is None:
            value = Nothing() if name[0].islower() else Anything(name, (Nothing,), {})
        setattr(self, name, value)
        return value


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of Mininet, and others that are not installed."""

    def find_spec(self, name, where=None, target=None):
        root = name.split(".")[0]
        if root in ("mininet", "mn_wifi", "ipmininet", "containernet") or self.last:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def __init__(self, last):
        self.last = last

    def create_module(self, spec):
        root = spec.name.split(".")[0]
        if self.last and root not in sys.stdlib_module_names:
            note("module %s is not installed: it does nothing" % spec.name)
        module = Module(spec.name)
        module.__all__ = list(known) + [
            "CLI", "TCLink", "OVSSwitch", "OVSKernelSwitch", "OVSController", "RemoteController",
            "Controller", "Node", "Host", "CPULimitedHost", "setLogLevel", "info"]
        return module

    def exec_module(self, module):
        pass


def nothing(*args, **kwargs):
    note("a command of this machine is left out")
    return Nothing()


def refuse(*args, **kwargs):
    raise Enough


def network():
    """Runs the file, and returns its network."""
    sys.meta_path.insert(0, Finder(False))
    sys.meta_path.append(Finder(True))
    os.system = subprocess.Popen = subprocess.run = subprocess.call = nothing
    subprocess.check_output = subprocess.check_call = subprocess.getoutput = nothing
    os.geteuid = os.getuid = lambda: 0
    time.sleep = lambda seconds: None
    builtins.input = builtins.raw_input = refuse
    builtins.xrange = range  # of Python 2, in which many files were written
    sys.argv = [path] + sys.argv[3:]
    sys.path.insert(0, os.path.dirname(path))
    with open(path, encoding="utf-8", errors="replace") as file:
        code = compile(file.read(), path, "exec")
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except (Enough, SystemExit, KeyboardInterrupt):
        pass
    except Exception:  # the network may be there by then
        failed = traceback.format_exc().strip().splitlines()[-1]
        at = [f.lineno for f in traceback.extract_tb(sys.exc_info()[2])
              if os.path.abspath(f.filename) == path]
        notes.append({"line": at[-1] if at else 0, "text": "Python stops here: " + failed})
    topos = getattr(module, "topos", None)
    if isinstance(topos, dict) and topos and (wanted or not any(n._links for n in started)):
        if not wanted and len(topos) > 1:
            return {"error": "several topos: choose one of " + ", ".join(sorted(map(str, topos)))}
        if wanted and wanted not in topos:
            return {"error": "no topo %s: want one of %s"
                    % (wanted, ", ".join(sorted(map(str, topos))))}
        name = wanted or next(iter(topos))
        return made_of(topos[name], "topo " + name, name, parameters)
    nets = [n for n in started if n._links]
    if nets:
        return nets[-1]
    own = [v for v in vars(module).values()
           if isinstance(v, type) and issubclass(v, Topo) and v not in known.values()]
    made = [v for v in vars(module).values() if isinstance(v, Topo) and v.__dict__.get("_links")]
    if made:
        return made[-1]
    if wanted:
        own = [v for v in own if v.__name__ == wanted]
    if len(own) > 1:
        leaves = [v for v in own if not any(v in o.__mro__[1:] for o in own)]
        if len(leaves) > 1:
            return {"error": "several classes of Topo: choose one of "
                    + ", ".join(v.__name__ for v in leaves)}
        own = leaves
    if own:
        name = own[0].__name__
        return made_of(own[0], "class " + name, name, parameters)
    return {"error": "it builds no network: want a subclass of Topo, topos, or a Mininet with links"
            + "".join("; " + n["text"] for n in notes
                      if n["text"].startswith(("Python stops", "module "))),
            "line": next((n["line"] for n in notes if n["text"].startswith("Python stops")), 0)}


def made_of(topo, what, name, parameters):
    """Makes a topology, or says that it wants other parameters."""
    try:
        return topo(*parameters)
    except TypeError as e:
        if any(os.path.abspath(f.filename) == path
               for f in traceback.extract_tb(e.__traceback__)):
            raise  # it is of the file's own
        return {"error": "%s with parameters %s: %s: choose others, such as --topo %s,2"
                % (what, parameters, e, name)}


def main():
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        net = network()
    except Enough:
        net = {"error": "it asks for input before its network is there"}
    except SyntaxError as e:
        net = {"error": "Python: %s" % e.msg, "line": e.lineno or 0}
    except Exception as e:
        at = [f.lineno for f in traceback.extract_tb(e.__traceback__)
              if os.path.abspath(f.filename) == path]
        net = {"error": "Python: %s: %s" % (type(e).__name__, e), "line": at[-1] if at else 0}
    if isinstance(net, Topo):
        net._ready()
        net = {"nodes": [{k: v for k, v in n.items() if k != "object"}
                         for n in net._nodes.values()], "links": net._links}
    net["notes"] = notes
    json.dump(net, out)


main()
