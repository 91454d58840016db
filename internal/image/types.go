// SPDX-License-Identifier: Apache-2.0

// Package image unpacks container images, as `docker save` and OCI layouts have them, without a
// daemon and without root.
//
// An image is a list of layers, tar archives, each of which adds to the ones below, or removes from
// them by whiteouts (OCI image specification, "Image Layer Filesystem Changeset").
package image

// Image is the root of a host's file system, and what the image says of the program in it.
type Image struct {
	// Root is the folder with the files, by its absolute path.
	Root string `json:"root"`
	// Digest is that of the image's configuration; empty for a folder.
	Digest string `json:"digest,omitempty"`
	// Command is what the image runs, Env its environment as KEY=value, and Dir where it starts.
	Command []string `json:"command,omitempty"`
	Env     []string `json:"env,omitempty"`
	Dir     string   `json:"dir,omitempty"`
}
