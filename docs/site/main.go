// SPDX-License-Identifier: Apache-2.0

// Command site makes the documentation's web pages: one folder that a browser reads from the disk,
// without a server and without a network. make docs runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	root := flag.String("root", ".", "root of the repository")
	out := flag.String("out", "bin/site", "folder to write, which is made anew")
	figures := flag.String("figures", "", "folder of figures, NAME.svg for each scheme")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := build(ctx, *root, *out, *figures); err != nil {
		fmt.Fprintf(os.Stderr, "site: %v\n", err)
		os.Exit(1)
	}
}

// build reads the documents, generates the reference, and writes the site.
func build(ctx context.Context, root, out, figures string) error {
	generated, err := reference(ctx, root)
	if err != nil {
		return err
	}
	s, err := load(root, figures, generated)
	if err != nil {
		return err
	}
	if s.simulator, err = newSimulatorSite(ctx, root); err != nil {
		return err
	}
	return s.write(out)
}
