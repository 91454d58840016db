// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// changes has what becomes of each operator.
var changes = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.ADD: token.SUB, token.SUB: token.ADD,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

// site is an operator in a file.
type site struct {
	dir, file    string // of the package; the file by its whole path
	at           token.Position
	is, becoming token.Token
	line         string // of the file
}

func (s site) String() string {
	return fmt.Sprintf("%s:%d:%d: %s to %s in %q", filepath.Join(s.dir, filepath.Base(s.file)),
		s.at.Line, s.at.Column, s.is, s.becoming, s.line)
}

// listSites returns the operators of packages, without tests and generated files.
func listSites(packages []string) ([]site, error) {
	args := append([]string{"list", "-json=Dir,GoFiles"}, packages...)
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", withOutput(err))
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	var sites []site
	d := json.NewDecoder(strings.NewReader(string(out)))
	for d.More() {
		var p struct {
			Dir     string
			GoFiles []string
		}
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		dir, err := filepath.Rel(here, p.Dir)
		if err != nil {
			return nil, fmt.Errorf("package in %s: %w", p.Dir, err)
		}
		for _, name := range p.GoFiles {
			found, err := sitesOf(dir, filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			sites = append(sites, found...)
		}
	}
	if len(sites) == 0 {
		return nil, fmt.Errorf("packages %v have no operators", packages)
	}
	return sites, nil
}

// sitesOf returns the operators of a file, in its order.
func sitesOf(dir, file string) ([]site, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a source: %w", err)
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parse a source: %w", err)
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	lines := strings.Split(string(text), "\n")
	var sites []site
	ast.Inspect(parsed, func(n ast.Node) bool {
		b, ok := n.(*ast.BinaryExpr)
		if !ok || changes[b.Op] == token.ILLEGAL {
			return true
		}
		at := set.Position(b.OpPos)
		sites = append(sites, site{dir, file, at, b.Op, changes[b.Op],
			strings.TrimSpace(lines[at.Line-1])})
		return true
	})
	slices.SortFunc(sites, func(a, b site) int { return a.at.Offset - b.at.Offset })
	return sites, nil
}

// change writes the file with the operator changed.
func (s site) change(to string) error {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return fmt.Errorf("read a source: %w", err)
	}
	end := s.at.Offset + len(s.is.String())
	text = slices.Concat(text[:s.at.Offset], []byte(s.becoming.String()), text[end:])
	return os.WriteFile(to, text, 0o600)
}
