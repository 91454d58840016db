// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/klauspost/compress/zstd"
)

func file(name, text string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644,
		PAXRecords: map[string]string{"PCN.text": text}}
}

func folder(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}

func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

// tarOf returns an archive. The text of a file stands in its header, where it does no harm.
func tarOf(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range entries {
		text := h.PAXRecords["PCN.text"]
		h.Size = int64(len(text))
		h.PAXRecords = nil
		qt.Assert(t, qt.IsNil(w.WriteHeader(&h)))
		_, err := io.WriteString(w, text)
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Assert(t, qt.IsNil(w.Close()))
	return out.Bytes()
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

func blob(data []byte) string { return fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(data)) }

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(w.Close()))
	return out.Bytes()
}

// configOf is the configuration of an image with these layers.
func configOf(layers ...[]byte) []byte {
	ids := ""
	for i, layer := range layers {
		if i > 0 {
			ids += ","
		}
		ids += fmt.Sprintf("%q", digest(layer))
	}
	return fmt.Appendf(nil, `{"os":"linux","architecture":%q,"config":{"Env":["A=b"],`+
		`"Entrypoint":["/app"],"Cmd":["-x"],"WorkingDir":"/srv"},"rootfs":{"diff_ids":[%s]}}`,
		runtime.GOARCH, ids)
}

// saved is what docker save writes.
func saved(t testing.TB, layers ...[]byte) []byte {
	t.Helper()
	names := ""
	var files []tar.Header
	for i, layer := range layers {
		if i > 0 {
			names += ","
		}
		name := fmt.Sprintf("%d/layer.tar", i)
		names += fmt.Sprintf("%q", name)
		files = append(files, file(name, string(layer)))
	}
	files = append(files, file("c.json", string(configOf(layers...))),
		file("manifest.json", fmt.Sprintf(`[{"Config":"c.json","Layers":[%s]}]`, names)))
	return tarOf(t, files...)
}

// layout is an OCI layout, whose layers are compressed, with an index for several machines.
func layout(t testing.TB, layers ...[]byte) []tar.Header {
	t.Helper()
	config := configOf(layers...)
	files := []tar.Header{file("oci-layout", `{"imageLayoutVersion":"1.0.0"}`),
		file(blob(config), string(config))}
	list := ""
	for i, layer := range layers {
		data := zipped(t, layer)
		if i%2 == 1 {
			z, err := zstd.NewWriter(nil)
			qt.Assert(t, qt.IsNil(err))
			data = z.EncodeAll(layer, nil)
		}
		if i > 0 {
			list += ","
		}
		files = append(files, file(blob(data), string(data)))
		list += fmt.Sprintf(`{"digest":%q}`, digest(data))
	}
	manifest := fmt.Appendf(nil, `{"config":{"digest":%q},"layers":[%s]}`, digest(config), list)
	index := fmt.Appendf(nil, `{"manifests":[{"digest":%q,"platform":{"os":"linux",`+
		`"architecture":%q}},{"digest":%[1]q,"platform":{"os":"unknown","architecture":`+
		`"unknown"}}]}`,
		digest(manifest), runtime.GOARCH)
	return append(files, file(blob(manifest), string(manifest)), file(blob(index), string(index)),
		file("index.json", fmt.Sprintf(`{"manifests":[{"digest":%q}]}`, digest(index))))
}

func open(t testing.TB, archive []byte) (*Image, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image.tar")
	qt.Assert(t, qt.IsNil(os.WriteFile(name, archive, 0o644)))
	return Open(name, filepath.Join(t.TempDir(), "cache"))
}

// tree lists the files of a root, with their contents, and where links lead.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		at, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if e.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(name)
			all[at] = "-> " + to
			return err
		}
		text, err := os.ReadFile(name)
		all[at] = string(text)
		return err
	})
	qt.Assert(t, qt.IsNil(err))
	return all
}

// layers are three: the second removes and replaces files of the first, the third hides a folder.
func layers(t testing.TB) [][]byte {
	t.Helper()
	return [][]byte{
		tarOf(t, folder("etc"), file("etc/gone", "1"), file("etc/kept", "2"), file("bin/app", "3"),
			file("opt/old/a", "4"), link("run", "/var/run"), link("lib", "usr/lib"),
			link("etc/mtab", "/proc/mounts"), file("kind", "5"),
			tar.Header{Typeflag: tar.TypeLink, Name: "bin/same", Linkname: "bin/app"},
			tar.Header{Typeflag: tar.TypeChar, Name: "dev/null"}),
		tarOf(t, file("etc/.wh.gone", ""), file("etc/kept", "6"), file("run/pid", "7"),
			file("./lib/so", "8"), folder("kind"), file("kind/of", "9"),
			file("/up", "10")),
		tarOf(t, file("opt/new", "11"), file("opt/.wh..wh..opq", ""), file(".wh.up", "")),
	}
}

var unpacked = map[string]string{
	"etc/kept": "6", "bin/app": "3", "bin/same": "3", "run": "-> /var/run", "var/run/pid": "7",
	"lib": "-> usr/lib", "usr/lib/so": "8", "etc/mtab": "-> /proc/mounts", "kind/of": "9",
	"opt/new": "11",
}

// An image is the same from docker save and from a layout, as a file or a folder, compressed or
// not.
func TestOpen(t *testing.T) {
	all := layers(t)
	headers := layout(t, all...)
	dir := t.TempDir()
	for _, h := range headers {
		name := filepath.Join(dir, h.Name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(name), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(name, []byte(h.PAXRecords["PCN.text"]), 0o644)))
	}
	for name, get := range map[string]func() (*Image, error){
		"docker save":       func() (*Image, error) { return open(t, saved(t, all...)) },
		"docker save, gzip": func() (*Image, error) { return open(t, zipped(t, saved(t, all...))) },
		"layout":            func() (*Image, error) { return open(t, tarOf(t, headers...)) },
		"layout folder":     func() (*Image, error) { return Open(dir, t.TempDir()+"/c") },
	} {
		t.Run(name, func(t *testing.T) {
			i, err := get()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.DeepEquals(tree(t, i.Root), unpacked))
			root := i.Root
			i.Root = ""
			qt.Check(t, qt.DeepEquals(i, &Image{Digest: digest(configOf(all...)),
				Command: []string{"/app", "-x"}, Env: []string{"A=b"}, Dir: "/srv"}))
			left, err := os.ReadDir(filepath.Dir(root))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(left, 1))
		})
	}
}

// A folder that is no layout is a root. An image that is unpacked is not unpacked again.
func TestOpenFolderAndAgain(t *testing.T) {
	dir := t.TempDir()
	i, err := Open(dir, "unused")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(i, &Image{Root: dir}))

	name, cache := filepath.Join(dir, "image.tar"), filepath.Join(dir, "cache")
	qt.Assert(t, qt.IsNil(os.WriteFile(name, saved(t, tarOf(t, file("a", "1"))), 0o644)))
	i, err = Open(name, cache)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(i.Root, "a"))))
	again, err := Open(name, cache)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(again, i))
	qt.Check(t, qt.HasLen(tree(t, again.Root), 0))
}

// What is broken or hostile is refused, and leaves nothing.
func TestRefused(t *testing.T) {
	good := tarOf(t, file("a", "1"))
	device := func(name string) tar.Header {
		return tar.Header{Typeflag: tar.TypeBlock, Name: name}
	}
	hard := func(to string) tar.Header {
		return tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: to}
	}
	cut := saved(t, good)
	broken := saved(t, good)
	broken[600] ^= 1 // a bit of the layer
	for _, c := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"empty", nil, ".*it is no tar archive, or broken: unexpected EOF"},
		{"text", []byte("hello, this is no archive"), ".*it is no tar archive, or broken: .*"},
		{"root file system", tarOf(t, file("etc/passwd", "")), ".*it is no image: .*"},
		{"cut", cut[:len(cut)/3], ".*it is no tar archive, or broken: .*"},
		{"changed", broken, `.*layer 1 \(0/layer.tar\): .*`},
		{"two images", tarOf(t, file("manifest.json", "[{},{}]")), ".*has 2 images: save one"},
		{"no layers", tarOf(t, file("manifest.json", `[{"Config":"c"}]`), file("c", "{}")),
			".*0 layers: want 1 to 512"},
		{"no config", tarOf(t, file("manifest.json", `[{"Config":"c"}]`)),
			".*c: file does not exist"},
		{"no JSON", tarOf(t, file("manifest.json", "[")), ".*manifest.json: unexpected end .*"},
		{"other machine", tarOf(t, file("manifest.json", `[{"Config":"c"}]`),
			file("c", `{"os":"windows","architecture":"amd64"}`)), ".*it is for windows/amd64: .*"},
		{"no hashes", tarOf(t, file("manifest.json", `[{"Config":"c","Layers":["l"]}]`),
			file("c", "{}"), file("l", string(good))), ".*1 layers, .* has hashes of 0"},
		{"layer missing", tarOf(t, file("manifest.json", `[{"Config":"c","Layers":["l"]}]`),
			file("c", string(configOf(good)))), `.*layer 1 \(l\): file does not exist`},
		{"digest", tarOf(t, file("index.json", `{"manifests":[{"digest":"sha256:../../x"}]}`)),
			`.*digest "sha256:../../x": want .*`},
		{"blob missing", tarOf(t, file("index.json", `{"manifests":[{"digest":"`+digest(good)+
			`"}]}`)), ".*blobs/sha256/.*: file does not exist"},
		{"out", saved(t, tarOf(t, file("../a", ""))), `.*"../a": its path has "..".*`},
		{"out within", saved(t, tarOf(t, file("b/../../a", ""))), `.*its path has "..".*`},
		{"whiteout out", saved(t, tarOf(t, file("../.wh.a", ""))), `.*its path has "..".*`},
		{"whiteout of ..", saved(t, tarOf(t, file("a/.wh...", ""))), ".*a whiteout without a name"},
		{"hard link out", saved(t, tarOf(t, hard("../../etc/passwd"))), `.*its path has "..".*`},
		{"hard link to nothing", saved(t, tarOf(t, hard("/etc/passwd"))),
			`.*"a": .*no such file.*`},
		{"device", saved(t, tarOf(t, device("disk"))), ".*it is a device or a pipe: .*"},
		{"loop", saved(t, tarOf(t, link("a", "b"), link("b", "a"), file("a/c", ""))),
			".*more than 40 links in its path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			name, cache := filepath.Join(dir, "image.tar"), filepath.Join(dir, "cache")
			qt.Assert(t, qt.IsNil(os.WriteFile(name, c.archive, 0o644)))
			_, err := Open(name, cache)
			qt.Check(t, qt.ErrorMatches(err, "(?s)"+c.want))
			qt.Check(t, qt.HasLen(tree(t, dir), 1)) // the archive
		})
	}
}

// Links lead to where they would on the host: none leads out of the root while it is unpacked.
func TestLinksStayInside(t *testing.T) {
	outside := t.TempDir()
	i, err := open(t, saved(t, tarOf(t,
		link("abs", outside), file("abs/a", "1"), link("up", "../../../.."), file("up/b", "2"),
		link("c", outside+"/c"), file("c", "3"), link("deep", "x/../../y"), file("deep/d", "4"))))
	qt.Assert(t, qt.IsNil(err))
	got := tree(t, i.Root)
	qt.Check(t, qt.Equals(got[filepath.Join(outside, "a")[1:]], "1"))
	qt.Check(t, qt.Equals(got["b"], "2"))
	qt.Check(t, qt.Equals(got["c"], "3")) // the link is replaced
	qt.Check(t, qt.Equals(got["y/d"], "4"))
	qt.Check(t, qt.HasLen(tree(t, outside), 0))
}

// Whatever the archive, nothing is written beside the cache.
func FuzzOpen(f *testing.F) {
	good := tarOf(f, file("a", "1"), link("b", "/a"))
	f.Add(saved(f, good))
	f.Add(tarOf(f, layout(f, good)...))
	f.Add(zipped(f, saved(f, good)))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		name := filepath.Join(dir, "image.tar")
		qt.Assert(t, qt.IsNil(os.WriteFile(name, archive, 0o644)))
		i, err := Open(name, filepath.Join(dir, "cache"))
		if err != nil {
			qt.Check(t, qt.HasLen(tree(t, dir), 1))
			return
		}
		qt.Check(t, qt.Equals(filepath.Dir(i.Root), filepath.Join(dir, "cache")))
	})
}

// Whatever the layer, which no hash protects here, nothing is written beside its root.
func FuzzLayer(f *testing.F) {
	for _, layer := range layers(f) {
		f.Add(layer)
	}
	f.Fuzz(func(t *testing.T, layer []byte) {
		dir := t.TempDir()
		name := filepath.Join(dir, "image.tar")
		qt.Assert(t, qt.IsNil(os.WriteFile(name, saved(t, layer), 0o644)))
		i, err := Open(name, filepath.Join(dir, "a/b/c/cache"))
		if err != nil {
			return
		}
		qt.Assert(t, qt.IsNil(os.RemoveAll(i.Root)))
		qt.Check(t, qt.HasLen(tree(t, dir), 1))
	})
}
