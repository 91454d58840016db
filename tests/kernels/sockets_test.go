// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader/ns"
)

// The clients of docs/sockets.md send through pcn, and ask for ECN.
func TestClientsOfDocs(t *testing.T) {
	nstest.RequireRoot(t)
	dir := t.TempDir()
	for _, c := range []struct {
		language, file string
		build          []string // "": nothing to build
		run            []string
	}{
		{"c", "client.c", []string{"gcc", "-Wall", "-Werror", "-o", "c", "client.c"}, []string{"./c"}},
		{"go", "client.go", []string{"go", "build", "-o", "go", "client.go"}, []string{"./go"}},
		{"python", "client.py", nil, []string{"python3", "client.py"}},
	} {
		t.Run(c.language, func(t *testing.T) {
			qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, c.file), codeOf(t, c.language), 0o644)))
			if c.build != nil {
				build := exec.Command(c.build[0], c.build[1:]...)
				build.Dir = dir
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v (run scripts/setup.sh --dev)\n%s", c.build, err, out)
				}
			}
			control := registered(t, registerPCN)
			p := newPath(t)
			p.client.plainSYN(t)
			l := p.server.listen(t)
			host, port, err := net.SplitHostPort(l.Addr().String())
			qt.Assert(t, qt.IsNil(err))
			cmd := exec.CommandContext(t.Context(), c.run[0], append(c.run[1:], host, port)...)
			cmd.Dir = dir
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			stdin, err := cmd.StdinPipe()
			qt.Assert(t, qt.IsNil(err))
			nstest.Do(t, p.client.NS, cmd.Start)
			data := make([]byte, 256<<10)
			stream().Read(data)
			_, err = stdin.Write(data)
			qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", &out))
			conn, err := l.Accept()
			qt.Assert(t, qt.IsNil(err))
			defer conn.Close()
			qt.Assert(t, qt.IsNil(conn.SetDeadline(time.Now().Add(stallTimeout))))
			got := make([]byte, len(data)/2) // it may keep the rest in a buffer until its input ends
			_, err = io.ReadFull(conn, got)
			qt.Assert(t, qt.IsNil(err))
			f, found := p.sender(t, control, 1)
			qt.Assert(t, qt.IsTrue(found))
			qt.Check(t, qt.IsTrue(f.ECN))
			qt.Assert(t, qt.IsNil(stdin.Close()))
			rest, err := io.ReadAll(conn)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.IsTrue(bytes.Equal(append(got, rest...), data)))
			qt.Check(t, qt.IsNil(cmd.Wait()), qt.Commentf("%s", &out))
		})
	}
}

// listen listens with the namespace's own control.
func (e end) listen(t *testing.T) *net.TCPListener {
	t.Helper()
	var l net.Listener
	qt.Assert(t, qt.IsNil(ns.Do(netns.NsHandle(e.NS), func() (err error) {
		l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp4", e.Addr.String()+":0")
		return err
	})))
	t.Cleanup(func() { l.Close() })
	tcp := l.(*net.TCPListener)
	qt.Assert(t, qt.IsNil(tcp.SetDeadline(time.Now().Add(stallTimeout))))
	return tcp
}

// codeOf is the block of docs/sockets.md in this language.
func codeOf(t *testing.T, language string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../docs/sockets.md")
	qt.Assert(t, qt.IsNil(err))
	_, rest, ok := strings.Cut(string(text), fmt.Sprintf("\n```%s\n", language))
	qt.Assert(t, qt.IsTrue(ok), qt.Commentf("docs/sockets.md has no %s", language))
	code, _, ok := strings.Cut(rest, "\n```\n")
	qt.Assert(t, qt.IsTrue(ok))
	return []byte(code + "\n")
}
