// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// anchors makes the anchors of headings as GitHub does, so that a link works in both places.
type anchors map[string]int

// Generate returns the anchor of a heading with this text.
func (a anchors) Generate(text []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(string(text)))
	n := a[id]
	a[id]++
	if n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

// Put notes an anchor that a document sets itself.
func (a anchors) Put(id []byte) { a[string(id)]++ }
