// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

const imageProgram = `package main

import (
	"fmt"
	"os"
)

func main() {
	dir, _ := os.Getwd()
	hosts, _ := os.ReadFile("/etc/hosts")
	_, err := os.Stat("/bin/sh")
	fmt.Println(dir, os.Getenv("GREETING"), os.Args[1:], len(hosts) > 0, os.IsNotExist(err))
	fmt.Println(os.WriteFile("/new", []byte("x"), 0o644))
}
`

// imageOf builds a program into the root of an image, and the image, as docker save has it.
func imageOf(t *testing.T, dir string) {
	t.Helper()
	source := filepath.Join(dir, "app.go")
	qt.Assert(t, qt.IsNil(os.WriteFile(source, []byte(imageProgram), 0o644)))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "root/app"),
		source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	app, err := os.ReadFile(filepath.Join(dir, "root/app"))
	qt.Assert(t, qt.IsNil(err))
	layer := tarOf(t, "opt/app", app)
	config := fmt.Appendf(nil, `{"os":"linux","architecture":%q,"config":{"Env":["GREETING=hi",`+
		`"PATH=/opt"],"Entrypoint":["app"],"Cmd":["-x"],"WorkingDir":"/srv/www"},"rootfs":`+
		`{"diff_ids":["sha256:%x"]}}`, runtime.GOARCH, sha256.Sum256(layer))
	saved := tarOf(t, "layer.tar", layer, "c.json", config, "manifest.json",
		[]byte(`[{"Config":"c.json","Layers":["layer.tar"]}]`))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "app.tar"), saved, 0o644)))
}

// tarOf returns an archive of files: names and what they contain.
func tarOf(t *testing.T, files ...any) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for i := 0; i < len(files); i += 2 {
		data := files[i+1].([]byte)
		h := &tar.Header{Name: files[i].(string), Mode: 0o755, Size: int64(len(data))}
		qt.Assert(t, qt.IsNil(w.WriteHeader(h)))
		_, err := w.Write(data)
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.IsNil(w.Close()))
	return out.Bytes()
}

// Programs see an image in place of this machine's files, whether it has a shell or not, and write
// nothing of it. The experiment of a result needs the archive no more.
func TestProgramsInImages(t *testing.T) {
	cache, err := os.UserCacheDir() // hosts have a /tmp of their own
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.MkdirAll(cache, 0o700)))
	dir, err := os.MkdirTemp(cache, "pcn-image-")
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { qt.Check(t, qt.IsNil(os.RemoveAll(dir))) })
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	imageOf(t, dir)
	file := filepath.Join(dir, "images.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(programsHead+`programs:
  - {name: archive, host: A0, image: app.tar}
  - {name: folder, host: A0, image: root, command: [/app, y], env: {GREETING: hello}}
`), 0o644)))
	e, err := experiment.Load(file)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(dir, "app.tar"))))
	e, err = experiment.Parse("again.yaml", e.Source())
	qt.Assert(t, qt.IsNil(err))
	t.Setenv("XDG_CACHE_HOME", "") // where the kernel is
	run := runPrograms(t, e, "cubic")
	for i, want := range []string{
		"/srv/www hi [-x] true true\n<nil>\n", "/tmp/folder hello [y] true true\n<nil>\n",
	} {
		qt.Check(t, qt.Equals(string(run.Programs[i].Files[result.StdoutFile]), want))
	}
	left, err := os.ReadDir(filepath.Join(dir, "root"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(left, 1))

	qt.Assert(t, qt.IsNil(os.RemoveAll(filepath.Join(dir, "cache"))))
	engine, err := NewMicroVMs("", false)
	qt.Assert(t, qt.IsNil(err))
	_, err = engine.Run(t.Context(), job.Job{Experiment: e, Scheme: "cubic"}, noCPU,
		func(float64) {})
	qt.Check(t, qt.ErrorMatches(err, "image app.tar of program archive is not unpacked here: .*"))
}
