// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/internal/image"
)

// ImageOf returns the image of a program; nil if it sees this machine's files.
func (e *Experiment) ImageOf(p Program) *image.Image { return e.images[p.Image] }

// validateImage unpacks the image of a program. The experiment's source then has where it is in
// place of a file's text. The image says what runs if the program does not.
func (d *decoder) validateImage(at string, e *Experiment, p *Program) {
	if !d.hasRequired(at, "image") {
		return
	}
	if e.images == nil {
		e.images = map[string]*image.Image{}
	}
	if e.images[p.Image] == nil {
		i, err := d.openImage(e, p.Image)
		if err != nil {
			d.fail(at+"image", err.Error(), "")
			return
		}
		e.images[p.Image] = i
	}
	if !d.has(at + "command") {
		p.Command = e.images[p.Image].Command
	}
}

func (d *decoder) openImage(e *Experiment, name string) (*image.Image, error) {
	text, ok := e.Files[name]
	if !ok {
		text, ok = d.attached.read[name]
	}
	if ok {
		i := &image.Image{}
		if err := json.Unmarshal([]byte(text), i); err != nil || !filepath.IsAbs(i.Root) {
			return nil, fmt.Errorf("%q under files: is no unpacked image", name)
		}
		return i, nil
	}
	if d.attached.dir == "" {
		return nil, fmt.Errorf("image %q is not in the experiment: read the experiment from its "+
			"folder", name)
	}
	where := name
	if !filepath.IsAbs(name) {
		where = filepath.Join(d.attached.dir, name)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder: %w", err)
	}
	i, err := image.Open(where, filepath.Join(cache, "pcn", "images"))
	if err != nil {
		return nil, err
	}
	packed, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("note image %s: %w", name, err)
	}
	d.attached.read[name] = string(packed)
	return i, nil
}
