// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const containerfile = "packaging/container/Containerfile"

// instruction is one of the container's recipe, such as RUN and what it runs.
type instruction struct{ name, text string }

func instructions(t *testing.T) []instruction {
	t.Helper()
	var all []instruction
	text := strings.ReplaceAll(read(t, "../../"+containerfile), "\\\n", "")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		all = append(all, instruction{name, strings.TrimSpace(rest)})
	}
	return all
}

// No container engine is here to build the recipe. So each file, command and version that it names
// is held against this repository.
func TestContainerfile(t *testing.T) {
	root := unpacked(t) // of the Debian package: it has the program
	pcn := filepath.Join(root, "usr/bin/pcn")
	seen := map[string]int{}
	for _, i := range instructions(t) {
		seen[i.name]++
		switch i.name {
		case "FROM":
			checkBase(t, i.text)
		case "COPY":
			checkCopy(t, strings.Fields(i.text))
		case "RUN":
			for command := range strings.SplitSeq(i.text, "&&") {
				checkCommand(t, strings.Fields(command), pcn)
			}
		case "ENV":
			qt.Check(t, qt.Equals(i.text, "XDG_CACHE_HOME=/var/cache"))
		case "ENTRYPOINT":
			qt.Check(t, qt.Equals(i.text, `["pcn"]`))
		case "WORKDIR":
		default:
			t.Errorf("instruction %s: this test does not know it", i.name)
		}
	}
	qt.Check(t, qt.DeepEquals(seen, map[string]int{
		"FROM": 2, "WORKDIR": 2, "COPY": 2, "RUN": 3, "ENV": 1, "ENTRYPOINT": 1,
	}))
}

// checkBase checks the image that a stage begins with: the version of Go is go.mod's.
func checkBase(t *testing.T, text string) {
	t.Helper()
	golang, found := strings.CutPrefix(text, "docker.io/library/golang:")
	if !found {
		qt.Check(t, qt.Equals(text, "docker.io/library/debian:bookworm-slim"))
		return
	}
	wanted := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../../go.mod"))
	qt.Check(t, qt.Equals(golang, wanted[1]+"-bookworm AS build"))
}

// checkCopy checks that what is copied is there: the repository, or what make build leaves.
func checkCopy(t *testing.T, words []string) {
	t.Helper()
	if words[0] != "--from=build" {
		qt.Check(t, qt.DeepEquals(words, []string{".", "."}))
		return
	}
	bin := regexp.MustCompile(`(?m)^BIN := (\S+)$`).FindStringSubmatch(read(t, "../../Makefile"))
	qt.Check(t, qt.DeepEquals(words[1:], []string{"/src/" + bin[1], "/usr/bin/pcn"}))
}

// checkCommand checks a command of the recipe.
func checkCommand(t *testing.T, words []string, pcn string) {
	t.Helper()
	switch words[0] {
	case "make":
		target := "\n" + words[1] + ":"
		qt.Check(t, qt.StringContains(read(t, "../../Makefile"), target))
	case "pcn":
		help := command(t, pcn, append(words[1:], "--help")...)
		qt.Check(t, qt.StringContains(help, strings.Join(words, " ")+" ["), qt.Commentf("%s", help))
	case "apt-get":
		if words[1] != "install" {
			qt.Check(t, qt.DeepEquals(words[1:], []string{"update"}))
			return
		}
		checkDebianPackages(t, words[2:])
	case "rm":
	default:
		t.Errorf("command %v: this test does not know it", words)
	}
}

// checkDebianPackages checks that Debian has the packages, and that all of QEMU's are there.
func checkDebianPackages(t *testing.T, words []string) {
	t.Helper()
	install := "apt-get install --no-install-recommends qemu-system-x86 qemu-system-data"
	qt.Check(t, qt.StringContains(read(t, "../../docs/install.md"), install))
	for _, name := range strings.Fields(install)[3:] {
		qt.Check(t, qt.StringContains(" "+strings.Join(words, " ")+" ", " "+name+" "))
	}
	if _, err := exec.LookPath("apt-cache"); err != nil {
		return
	}
	for _, name := range words {
		if !strings.HasPrefix(name, "-") {
			qt.Check(t, qt.StringContains(command(t, "apt-cache", "policy", name), name+":"))
		}
	}
}

// The commands in the recipe's head name the recipe, and an experiment that is there.
func TestContainerUsage(t *testing.T) {
	text := read(t, "../../"+containerfile)
	qt.Check(t, qt.StringContains(text, "podman build -t pcn -f "+containerfile+" ."))
	m := regexp.MustCompile(`pcn run (\S+)`).FindStringSubmatch(text)
	qt.Assert(t, qt.HasLen(m, 2))
	_, err := os.Stat("../../netns-lab/experiments/" + m[1] + ".yaml")
	qt.Check(t, qt.IsNil(err))
}

// What the recipe's context leaves out is nothing that the repository has.
func TestContainerContext(t *testing.T) {
	for line := range strings.Lines(read(t, "../../.dockerignore")) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		tracked := command(t, "git", "-C", "../..", "ls-files", "--", line)
		qt.Check(t, qt.Equals(tracked, ""), qt.Commentf("%s", line))
	}
}
