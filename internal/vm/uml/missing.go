// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"fmt"
	"os/exec"
	"strings"
)

// tools are the programs that the build runs, and the packages of Debian that have them.
var tools = []struct{ program, debian string }{
	{"gcc", "gcc"}, {"make", "make"}, {"flex", "flex"}, {"bison", "bison"}, {"bc", "bc"},
	{"pahole", "dwarves"}, {"strip", "binutils"}, {"tar", "tar"}, {"xz", "xz-utils"},
}

// headers are those of libraries that the build links, and the packages of Debian that have them.
var headers = []struct{ file, debian string }{
	{"stdio.h", "libc6-dev"}, {"gelf.h", "libelf-dev"}, {"zlib.h", "zlib1g-dev"},
}

// Missing fails if this machine lacks what the build needs. The error says how Debian installs it.
func Missing() error {
	var what, packages []string
	for _, t := range tools {
		if _, err := exec.LookPath(t.program); err != nil {
			what, packages = append(what, t.program), append(packages, t.debian)
		}
	}
	if len(what) == 0 {
		for _, h := range headers {
			if !compiles("#include <" + h.file + ">\n") {
				what, packages = append(what, h.file), append(packages, h.debian)
			}
		}
	}
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("to build the kernel this machine lacks %s: on Debian, run as root: "+
		"apt-get install --no-install-recommends %s; or run pcn setup --kernel-file with a kernel "+
		"that was built elsewhere", strings.Join(what, ", "), strings.Join(packages, " "))
}

// compiles reports whether a C program passes the preprocessor.
func compiles(program string) bool {
	cmd := exec.Command("gcc", "-E", "-o", "/dev/null", "-")
	cmd.Stdin = strings.NewReader(program)
	return cmd.Run() == nil
}
