// SPDX-License-Identifier: Apache-2.0

//go:build !js

package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Bounds of what an archive may come to.
const (
	maxJSON    = 4 << 20
	maxLayers  = 512
	maxEntries = 2_000_000
	maxBytes   = 32 << 30 // unpacked
)

// Open returns the image of a file or folder. Files are unpacked below the folder cache, once for
// each image. A folder that is no OCI layout is a root by itself.
func Open(path, cache string) (*Image, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	var from source
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, layoutFile)); err != nil {
			return &Image{Root: path}, nil
		}
		folder, err := os.OpenRoot(path)
		if err != nil {
			return nil, fmt.Errorf("read image: %w", err)
		}
		defer folder.Close()
		from = folderSource{folder}
	} else {
		archive, err := openArchive(path)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", path, err)
		}
		defer archive.close()
		from = archive
	}
	m, err := readManifest(from)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", path, err)
	}
	i := m.image(filepath.Join(cache, strings.TrimPrefix(m.digest, "sha256:")))
	if err := m.unpackOnce(from, i.Root); err != nil {
		return nil, fmt.Errorf("image %s: %w", path, err)
	}
	return i, nil
}

// manifest is what an image consists of.
type manifest struct {
	digest string // of the configuration
	config config
	layers []string // their names in the source
}

// config is the configuration of an image, as far as it matters here.
type config struct {
	OS, Architecture string
	Config           struct {
		Env, Entrypoint, Cmd []string
		WorkingDir           string
	} `json:"config"`
	RootFS struct {
		DiffIDs []string `json:"diff_ids"` // of the layers, uncompressed
	} `json:"rootfs"`
}

func (m *manifest) image(root string) *Image {
	c := m.config.Config
	return &Image{
		Root: root, Digest: m.digest, Command: append(c.Entrypoint, c.Cmd...), Env: c.Env,
		Dir: c.WorkingDir,
	}
}

// Names in archives and layouts.
const (
	layoutFile = "oci-layout"
	indexFile  = "index.json"
	savedFile  = "manifest.json"
)

// readManifest reads a layout's manifest, or else that of docker save.
func readManifest(from source) (*manifest, error) {
	m, err := readLayout(from)
	if errors.Is(err, fs.ErrNotExist) {
		m, err = readSaved(from)
	}
	if errors.Is(err, errNoImage) {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	switch c := m.config; {
	case c.OS != "" && c.OS != "linux" || c.Architecture != "" && c.Architecture != runtime.GOARCH:
		return nil, fmt.Errorf("it is for %s/%s: want linux/%s", c.OS, c.Architecture,
			runtime.GOARCH)
	case len(m.layers) == 0 || len(m.layers) > maxLayers:
		return nil, fmt.Errorf("%d layers: want 1 to %d", len(m.layers), maxLayers)
	case len(c.RootFS.DiffIDs) != len(m.layers):
		return nil, fmt.Errorf("%d layers, and the configuration has hashes of %d",
			len(m.layers), len(c.RootFS.DiffIDs))
	}
	return m, nil
}

var errNoImage = errors.New("it is no image: want what `docker save` writes, or an OCI layout; " +
	"a root file system is unpacked to a folder (mkdir root && tar -C root -xf FILE), and " +
	"the folder given")

// readSaved reads manifest.json of docker save.
func readSaved(from source) (*manifest, error) {
	var saved []struct {
		Config string
		Layers []string
	}
	_, err := readJSON(from, savedFile, &saved)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoImage
	}
	if err != nil {
		return nil, err
	}
	if len(saved) != 1 {
		return nil, fmt.Errorf("%s has %d images: save one", savedFile, len(saved))
	}
	m := &manifest{layers: saved[0].Layers}
	m.digest, err = readJSON(from, saved[0].Config, &m.config)
	return m, err
}

// descriptor points to a blob of a layout.
type descriptor struct {
	MediaType, Digest string
	Platform          *struct{ OS, Architecture string }
}

// blob returns the name of what it points to, or an error if it has none.
func (d descriptor) blob() (string, error) {
	digits, ok := strings.CutPrefix(d.Digest, "sha256:")
	if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("digest %q: want sha256: and 64 hexadecimal digits", d.Digest)
	}
	return "blobs/sha256/" + digits, nil
}

// readLayout reads index.json of an OCI layout, and those that it points to.
func readLayout(from source) (*manifest, error) {
	const mostIndexes = 4
	var index struct {
		Manifests []descriptor
		Config    *descriptor // a manifest has these
		Layers    []descriptor
	}
	name := indexFile
	for range mostIndexes {
		index.Manifests, index.Config = nil, nil
		if _, err := readJSON(from, name, &index); err != nil {
			if name == indexFile {
				return nil, err
			}
			return nil, missing(err)
		}
		if index.Config != nil {
			break
		}
		d, err := choose(index.Manifests)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if name, err = d.blob(); err != nil {
			return nil, err
		}
	}
	if index.Config == nil {
		return nil, fmt.Errorf("%s: indexes of indexes are too deep: want at most %d", indexFile,
			mostIndexes)
	}
	m := &manifest{}
	name, err := index.Config.blob()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if m.digest, err = readJSON(from, name, &m.config); err != nil {
		return nil, missing(err)
	}
	if m.digest != index.Config.Digest {
		return nil, fmt.Errorf("%s: its content has digest %s", name, m.digest)
	}
	for i, d := range index.Layers {
		name, err := d.blob()
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i+1, err)
		}
		m.layers = append(m.layers, name)
	}
	return m, nil
}

// missing makes an error of what an archive names and does not have, which is no reason to read it
// as another kind.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(err.Error())
	}
	return err
}

// choose returns the one image for this machine.
func choose(all []descriptor) (descriptor, error) {
	var fit []descriptor
	for _, d := range all {
		p := d.Platform
		if p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH {
			fit = append(fit, d)
		}
	}
	if len(fit) != 1 {
		return descriptor{}, fmt.Errorf("%d of %d images are for linux/%s: want one", len(fit),
			len(all), runtime.GOARCH)
	}
	return fit[0], nil
}

// readJSON reads a file of the source, and returns its digest.
func readJSON(from source, name string, to any) (digest string, err error) {
	file, err := from.open(name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxJSON+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxJSON {
		return "", fmt.Errorf("%s is longer than %d bytes", name, maxJSON)
	}
	if err := json.Unmarshal(data, to); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data)), nil
}
