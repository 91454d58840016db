// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/bpf"
	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/config/scheme/compile"
	"github.com/pcn-linux/pcn/internal/sim"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

func newScheme() *cobra.Command {
	c := &cobra.Command{
		Use:   "scheme",
		Short: "List, show and write congestion-control schemes",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newSchemeList(), newSchemeShow(), newSchemeNew(), newSchemeCompile())
	return c
}

func newSchemeList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the built-in schemes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				all := []schemeJSON{}
				for _, s := range scheme.Builtin().Schemes() {
					all = append(all, schemeOf(s))
				}
				return printJSON(cmd.OutOrStdout(), all)
			}
			t := newTable(cmd.OutOrStdout())
			for _, s := range scheme.Builtin().Schemes() {
				fmt.Fprintf(t, "%s\t%s\n", s.Name, s.Title)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all parameters")
	return c
}

func newSchemeShow() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show SCHEME|FILE",
		Short: "Show what a scheme needs, and its parameters; of your own C file, whether it compiles",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := findScheme(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), schemeOf(s))
			}
			return showScheme(cmd, s)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// findScheme returns a scheme by its name, or of a C file or object.
func findScheme(ctx context.Context, name string) (scheme.Scheme, error) {
	if !isOwnFile(name) {
		s, err := scheme.Builtin().Lookup(name)
		if err != nil {
			return s, usageError{err}
		}
		return s, nil
	}
	own, err := compileOwn(ctx, name)
	if err != nil {
		return scheme.Scheme{}, err
	}
	_, s, err := scheme.Builtin().With(own)
	return s, err
}

// isOwnFile reports whether the name of a scheme is that of a file.
func isOwnFile(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".c" || ext == ".o"
}

// compileOwn compiles a scheme of the user's own for labs.
func compileOwn(ctx context.Context, path string) (scheme.Own, error) {
	return compile.Scheme(ctx, path,
		compile.Sources{Kernel: npecn.Source(), Simulator: sim.Source(), Counted: true})
}

// compileForHosts compiles a control of the user's own without what only labs read.
func compileForHosts(ctx context.Context, path string) ([]byte, error) {
	own, err := compile.Scheme(ctx, path,
		compile.Sources{Kernel: npecn.Source(), Simulator: sim.Source()})
	return own.Control, err
}

func showScheme(cmd *cobra.Command, s scheme.Scheme) error {
	w := cmd.OutOrStdout()
	fmt.Fprintf(w, "%s\n%s\n\n", s.Title, s.Source)
	if s.Object == nil {
		return nil
	}
	values, problems := s.Object.Resolve(scheme.Settings{}, scheme.Network{LineRateBps: 40e9, FrameBytes: 1000})
	if len(problems) > 0 {
		return fmt.Errorf("%s: %s", problems[0].Key, problems[0].Msg)
	}
	setup := s.Setup(values)
	fmt.Fprintf(w, "congestion control  %s (%s)\nswitches mark by    %s\nreceivers run       %s\nsenders hear        %s\n\n",
		s.Control, s.Sender, setup.Marker, setup.Notification, setup.Hears)
	t := newTable(w)
	fmt.Fprintf(t, "KEY\tDEFAULT\tRANGE\tWHAT\n")
	for _, p := range s.Object.Params {
		limits := p.Range
		if len(p.Choices) > 0 {
			limits = strings.Join(p.Choices, ", ")
		}
		fmt.Fprintf(t, "%s.%s\t%s\t%s\t%s\n", s.Section, p.Key, values.Get(p.Key), limits, p.Doc)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nDefaults are for links of 40 Gbit/s.\n")
	return nil
}

func newSchemeCompile() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "compile FILE",
		Short: "Compile the C file of your own control, for hosts that have no compiler",
		Example: `  pcn scheme compile mine.c            writes mine.o
  pcn host up --control ./mine.o --line-rate 10Gbps`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			object, err := compileForHosts(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			out = cmp.Or(out, strings.TrimSuffix(args[0], filepath.Ext(args[0]))+".o")
			if err := os.WriteFile(out, object, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", out)
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write (default: that of the C file, ending in .o)")
	return c
}

// templateKinds are what can be written, and the files of each: template and name.
var templateKinds = map[string][][2]string{
	"rate":         {{"rate.c", "NAME.c"}, {"control.yaml", "NAME.yaml"}},
	"window":       {{"window.c", "NAME.c"}, {"control.yaml", "NAME.yaml"}},
	"marker":       {{"mark.h", "NAME.h"}},
	"notification": {{"np.c", "NAME.c"}},
}

// schemeName is what a control may be called: a name in C that fits the kernel's 15 bytes, with TCD too.
var schemeName = lazy.Regexp(`^[a-z][a-z0-9_]{0,10}$`)

func newSchemeNew() *cobra.Command {
	var t templateFlags
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a congestion control of your own to start from, with a test",
		Long: `Write a commented template: a rate-based or a window-based congestion control with an experiment that tests it,
a marking rule for switches, or a notification point for receivers.
With --from, begin as a built-in control: the same C, and an experiment with its values.`,
		Example: `  pcn scheme new mine                  mine.c and mine.yaml, rate-based
  pcn scheme new mine --kind window
  pcn scheme new mine --from dcqcn     mine.c, mine_algo.h and mine.yaml, which begin as DCQCN
  pcn run mine.yaml                    compile and test it
  pcn run hol --algo ./mine.c,pcn      Fig. 2 of the PCN paper with it`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.from != "" && cmd.Flags().Changed("kind") {
				return usageError{errors.New("--from and --kind: give one")}
			}
			files, err := t.write(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", strings.Join(files, " and "))
			if slices.ContainsFunc(files, func(f string) bool { return filepath.Ext(f) == ".yaml" }) {
				fmt.Fprintf(cmd.OutOrStdout(), "test it: pcn run %s\n", files[len(files)-1])
			}
			return nil
		},
	}
	c.Flags().StringVar(&t.kind, "kind", "rate",
		"what to write: rate, window, marker or notification")
	c.Flags().StringVar(&t.from, "from", "",
		"built-in control to begin as: "+strings.Join(builtInSources(), ", "))
	c.Flags().StringVar(&t.dir, "dir", ".", "folder to write into")
	c.Flags().BoolVar(&t.force, "force", false, "overwrite files that exist")
	return c
}

// templateFlags say what to write, and where.
type templateFlags struct {
	kind, from, dir string
	force           bool
}

// write writes the files of a control, and returns their paths. It overwrites only by force.
func (t templateFlags) write(name string) ([]string, error) {
	if !schemeName().MatchString(name) {
		return nil, usageError{fmt.Errorf("%q can't be a congestion control's name: want up to 11 of a to z, 0 to 9 and _, a letter first", name)}
	}
	if _, err := scheme.Builtin().Lookup(name); err == nil {
		return nil, usageError{fmt.Errorf("there is a scheme %s already: choose another name", name)}
	}
	texts, err := t.files(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range texts {
		path := filepath.Join(t.dir, f[0])
		if _, err := os.Lstat(path); err == nil && !t.force {
			return nil, fmt.Errorf("%s is there already: choose another name, or overwrite it "+
				"with --force", path)
		}
		files = append(files, path)
	}
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder: %w", err)
	}
	for i, f := range texts {
		if err := os.WriteFile(files[i], []byte(f[1]), 0o644); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// files returns the names and the texts of the files to write.
func (t templateFlags) files(name string) ([][2]string, error) {
	if t.from != "" {
		return filesFrom(t.from, name)
	}
	templates, ok := templateKinds[t.kind]
	if !ok {
		return nil, usageError{fmt.Errorf("--kind %s: want rate, window, marker or notification",
			t.kind)}
	}
	var files [][2]string
	for _, template := range templates {
		text, err := fs.ReadFile(bpf.Templates, "templates/"+template[0])
		if err != nil {
			return nil, err
		}
		files = append(files, [2]string{strings.ReplaceAll(template[1], "NAME", name),
			withName(string(text), name)})
	}
	return files, nil
}

// writeNew writes a file that must not be there.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: remove it, or choose another name", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
