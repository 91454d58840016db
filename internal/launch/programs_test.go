// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// programsHead is a network of 100 Mbit/s with a round trip of 20 ms and a buffer of twice that.
const programsHead = `name: programs
topology: {kind: dumbbell, senders: 1, receivers: 1, rate: 100Mbps, delay: 3333us}
schemes: [cubic, bbr, dctcp]
switch: {pfc: {off: true}, port_buffer: 500KB}
duration: 20s
warmup: 0ms
sample: 10ms
captures: [A0]
`

// iperf measures after the slow start. Of a frame of 1000 bytes 934 are payload: 14 are Ethernet's,
// 20 IP's and 32 TCP's, with timestamps.
const iperf = `programs:
  - {name: server, host: B0, command: [iperf3, -s, --forceflush], server: true}
  - {name: client, host: A0, after: {program: server, says: listening},
     command: [iperf3, -c, B0, -O, "1", -t, "2", -J]}
  - {name: late, host: A0, after: {program: client, says: never}, command: [echo]}
expect:
  - {what: it ends well, program: client, exit: 0}
  - {what: the link's rate within 1%, program: client,
     json: end.sum_received.bits_per_second, min: 92466000, max: 94334000}
`

const fetch = `programs:
  - {name: pages, host: B0, server: true,
     command: [python3, -u, -m, http.server, "80", -d, /etc]}
  - {name: fetch, host: A0, after: {program: pages, says: Serving},
     command: [curl, -sS, -D, headers, "http://B0/hostname"], files: [headers]}
expect:
  - {what: it ends well, program: fetch, exit: 0}
  - {what: it gets the file of the other host, program: fetch, says: ^B0$}
  - {what: a program logs the request, program: pages, says: GET /hostname}
`

// servers are three that people run, with their clients. The keys of ssh are made in the run.
const servers = `programs:
  - {name: redis, host: B0, server: true,
     command: [redis-server, --bind, 0.0.0.0, --protected-mode, "no", --save, ""]}
  - {name: bench, host: A0, after: {program: redis, says: Ready to accept},
     command: [redis-benchmark, -h, B0, -n, "300", -c, "5", -t, "set,get", --csv]}
  - {name: nginx, host: B0, server: true,
     command: [sh, -c, "echo 'events {} http { access_log off; server { root /etc; } }' >conf;
       exec nginx -c $PWD/conf -g 'daemon off; error_log stderr notice; pid /tmp/nginx.pid;'"]}
  - {name: curl, host: A0, after: {program: nginx, says: start worker processes},
     command: [curl, -sS, -w, "%{http_code} %{time_total}", "http://B0/hostname"]}
  - {name: keys, host: A0, command: [sh, -c, "ssh-keygen -q -t ed25519 -N '' -f key &&
       cat key.pub && echo made && exec python3 -m http.server 99 >served 2>&1"], server: true}
  - {name: sshd, host: B0, server: true, after: {program: keys, says: made}, at: 1s,
     command: [sh, -c, "ssh-keygen -q -t ed25519 -N '' -f key; mkdir -p /run/sshd;
       curl -sS http://A0:99/key.pub >known; exec /usr/sbin/sshd -D -e -h $PWD/key
       -o AuthorizedKeysFile=$PWD/known -o StrictModes=no -o PermitRootLogin=yes -o UsePAM=no"]}
  - {name: scp, host: A0, after: {program: sshd, says: listening},
     command: [sh, -c, "head -c 300000 /dev/zero >zeros; to='-i ../keys/key
       -o StrictHostKeyChecking=no'; scp $to zeros B0:/tmp/copy && ssh $to B0 wc -c /tmp/copy"]}
expect:
  - {what: redis takes a round trip for a request, program: bench, says: '"GET","2[34]\d'}
  - {what: nginx has the page, program: curl, says: "^B0\n200 "}
  - {what: what was copied is there, program: scp, says: ^300000 /tmp/copy}
`

// postgres is a database, made in the run, and its benchmark.
const postgres = `programs:
  - name: postgres
    host: B0
    server: true
    command: [sh, -c, "bin=$(echo /usr/lib/postgresql/*/bin); chown postgres .; exec setpriv
      --reuid=postgres --regid=postgres --clear-groups sh -c \"$bin/initdb -D data -A trust
      --no-sync -U postgres >init && echo host all all 0.0.0.0/0 trust >>data/pg_hba.conf &&
      exec $bin/postgres -D data -k /tmp -c listen_addresses='*'\""]
  - {name: bench, host: A0, after: {program: postgres, says: ready to accept},
     command: [sh, -c, "to='-h B0 -U postgres'; pgbench $to -i -q postgres &&
       exec pgbench $to -c 4 -t 20 --random-seed=1 postgres"]}
expect:
  - {what: all is done, program: bench, says: "transactions actually processed: 80/80"}
`

func parsePrograms(t *testing.T, text string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("programs.yaml", []byte(programsHead+text))
	qt.Assert(t, qt.IsNil(err))
	for _, p := range e.Programs {
		_, err := exec.LookPath(p.Command[0])
		qt.Assert(t, qt.IsNil(err), qt.Commentf("make setup-dev installs it"))
	}
	return e
}

// need skips a test where this machine lacks a program that it is about.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s: scripts/setup.sh --dev installs it", program)
		}
	}
}

// buildModule builds a program of testdata, a module of its own, where hosts of a network see it:
// their /tmp is another, and this checkout may be in /tmp.
func buildModule(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.MkdirAll(cache, 0o700)))
	dir, err := os.MkdirTemp(cache, "pcn-"+name+"-")
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(os.RemoveAll(dir))) })
	file := filepath.Join(dir, name)
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "testdata/"+name, "-o", file,
		".")
	// as other builds of this checkout, so that they share the standard library
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod -trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		t.Skipf("modules of %s are not there, and can't be fetched: %s", name, out)
	}
	return file
}

// shared is one engine for all tests: it hashes the kernel once.
var shared = sync.OnceValues(func() (*MicroVMs, error) { return NewMicroVMs("", false) })

func runPrograms(t *testing.T, e *experiment.Experiment, scheme string) *result.Run {
	t.Helper()
	return runTimes(t, e, scheme, 1)[0]
}

// runTimes runs the programs some times at once. Each run meets the experiment's bounds.
func runTimes(t *testing.T, e *experiment.Experiment, scheme string, times int) []*result.Run {
	t.Helper()
	runs := runAtOnce(t, e, scheme, times)
	for _, run := range runs {
		for _, o := range result.Evaluate(e, run) {
			qt.Check(t, qt.IsTrue(o.Pass), qt.Commentf("%s: %s", o.Expect.What, o.Value()))
		}
	}
	return runs
}

// runAtOnce runs the programs some times at once, so that several keep CPUs busy for each other.
func runAtOnce(t *testing.T, e *experiment.Experiment, scheme string, times int) []*result.Run {
	t.Helper()
	engine, err := shared()
	qt.Assert(t, qt.IsNil(err))
	runs, errs := make([]*result.Run, times), make([]error, times)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			runs[i], errs[i] = engine.Run(t.Context(), job.Job{Experiment: e, Scheme: scheme},
				noCPU, func(float64) {})
		})
	}
	all.Wait()
	qt.Assert(t, qt.IsNil(errors.Join(errs...)))
	for _, run := range runs {
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
			qt.Commentf("%q", run.Manifest.Reasons))
	}
	return runs
}

// busy keeps a CPU of this machine busy until the test ends.
func busy(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil { // and compute nothing
		}
	}()
}

// sameThrice runs the programs three times and returns the first run, which was alone. The two
// others keep a CPU busy for each other, and have the same output, and the same packets at the same
// times.
func sameThrice(t *testing.T, e *experiment.Experiment, scheme string) *result.Run {
	t.Helper()
	first := runPrograms(t, e, scheme)
	for _, again := range runTimes(t, e, scheme, 2) {
		qt.Check(t, qt.HasLen(result.Diff(first, again), 0))
	}
	return first
}

func TestProgramsGiveTheSameBytes(t *testing.T) {
	for name, text := range map[string]string{
		"fetch": fetch, "servers": servers, "postgres": postgres,
	} {
		t.Run(name, func(t *testing.T) {
			databases, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
			qt.Assert(t, qt.IsNil(err))
			if name == "postgres" && len(databases) != 1 {
				t.Skipf("want one PostgreSQL, there are %q: scripts/setup.sh --dev installs it",
					databases)
			}
			if name == "postgres" {
				need(t, "pgbench", "setpriv")
			}
			if name == "servers" {
				need(t, "redis-server", "redis-benchmark", "nginx", "sshd", "ssh-keygen", "scp")
			}
			first := sameThrice(t, parsePrograms(t, text), "cubic")
			qt.Check(t, qt.IsTrue(first.Programs[0].Stopped))
			qt.Check(t, qt.IsTrue(len(first.Captures["A0"]) > 1000))
		})
	}
}

func TestProgramsFillTheLink(t *testing.T) {
	for _, scheme := range []string{"cubic", "bbr", "dctcp"} {
		t.Run(scheme, func(t *testing.T) {
			run := sameThrice(t, parsePrograms(t, iperf), scheme)
			qt.Check(t, qt.IsTrue(len(run.Captures["A0"]) > 1000))
			qt.Check(t, qt.StringContains(
				string(run.Programs[1].Files[result.StdoutFile]), `"`+scheme+`"`))
			qt.Check(t, qt.IsNil(run.Programs[2].StartNs))
			qt.Check(t, qt.Equals(run.Programs[2].Why,
				`program client ended and did not say "never"`))
		})
	}
}

// What a program can see is fixed.
func TestProgramsSeeAFixedMachine(t *testing.T) {
	const text = `programs:
  - {name: see, host: B0, command: [sh, -c, "date +%s.%N; uname -n; nproc; echo $$; pwd;
      od -An -N4 -tx1 /dev/urandom; touch a; stat -c %Y a; echo fd > /dev/fd/1; sleep 3600;
      date +%s.%N"], limit: 10s}
`
	e := parsePrograms(t, text)
	run := runPrograms(t, e, "cubic")
	see := run.Programs[0]
	lines := strings.Split(string(see.Files[result.StdoutFile]), "\n")
	qt.Assert(t, qt.HasLen(lines, 9), qt.Commentf("%q", lines)) // it is killed as it sleeps
	qt.Check(t, qt.Equals(lines[1], "B0"))
	qt.Check(t, qt.Equals(lines[2], "1"))
	qt.Check(t, qt.Equals(lines[4], "/tmp/see"))
	qt.Check(t, qt.Equals(lines[6], strings.Split(lines[0], ".")[0]))
	qt.Check(t, qt.Equals(lines[7], "fd"))
	qt.Check(t, qt.Equals(*see.ExitCode, 128+9))
	qt.Check(t, qt.Equals(*see.EndNs-*see.StartNs, int64(10e9)))
	qt.Check(t, qt.Equals(see.Why, "it was killed at its limit of 10s"))
	again := runPrograms(t, e, "cubic")
	qt.Check(t, qt.HasLen(result.Diff(run, again), 0))
}

// Programs see this machine's files, and can't write them.
func TestProgramsWriteNothingOfTheMachine(t *testing.T) {
	file := t.TempDir() + "/file" // below /tmp, which hosts have of their own: so beside it
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte("mine"), 0o644)))
	const text = `programs:
  - {name: write, host: A0, command: [sh, -c, "echo x > /etc/passwd; cat /etc/passwd;
      mount -t hostfs none /mnt; mknod d b 8 0; ls FILE"]}
`
	run := runPrograms(t, parsePrograms(t, strings.Replace(text, "FILE", file, 1)), "cubic")
	out := run.Programs[0].Files
	qt.Check(t, qt.Equals(string(out[result.StdoutFile]), "x\n"))
	for _, refused := range []string{"mount: ", "mknod: ", "ls: "} {
		qt.Check(t, qt.StringContains(string(out[result.StderrFile]), refused))
	}
	passwd, err := os.ReadFile("/etc/passwd")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Not(qt.Equals(string(passwd), "x\n")))
}
