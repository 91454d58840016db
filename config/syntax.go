// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"strings"

	"github.com/pcn-linux/pcn/config/lazy"
)

// unknownAnchor finds the name in an error of yaml.v3 that has no line.
var unknownAnchor = lazy.Regexp(`unknown anchor '([^']+)'`)

// mappingColon ends a key.
var mappingColon = lazy.Regexp(`:( |$)`)

// syntaxPlace returns the line and the column of a mistake that yaml.v3 reports at a line, or at
// none (0). The parser has no columns, and counts the lines of some errors from 0.
func syntaxPlace(data []byte, line int, msg string) (int, int) {
	if m := unknownAnchor().FindStringSubmatch(msg); m != nil {
		return position(data, bytes.Index(data, []byte("*"+m[1])))
	}
	if strings.HasPrefix(msg, "did not find expected") {
		line++
	}
	lines := bytes.Split(data, []byte("\n"))
	line = min(max(line, 1), len(lines))
	text := lines[line-1]
	col := len(text) - len(bytes.TrimLeft(text, " "))
	switch {
	case strings.Contains(msg, "cannot start any token"):
		col = max(col, bytes.IndexAny(text, "\t%@`"))
	case strings.HasPrefix(msg, "mapping values are not allowed"):
		if all := mappingColon().FindAllIndex(text, -1); all != nil {
			col = all[len(all)-1][0]
		}
	case strings.HasPrefix(msg, "did not find expected ','"):
		for line > 1 && !bytes.ContainsAny(lines[line-1], "[{") {
			line-- // the parser gave the end of the list
		}
		col = max(0, bytes.LastIndexAny(lines[line-1], "[{"))
	case strings.HasPrefix(msg, "found unexpected end of stream"):
		line, col = openQuote(data, line, col)
	}
	return line, col + 1
}

// position returns the line and the column of an offset.
func position(data []byte, offset int) (line, col int) {
	before := data[:max(offset, 0)]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// openQuote returns the line, from 1, and the column, from 0, of the first quote from a line on, or
// else of the last one before; the place as it was if there is none.
func openQuote(data []byte, line, col int) (int, int) {
	foundLine, foundCol := line, col
	for i, text := range bytes.Split(data, []byte("\n")) {
		at := bytes.IndexAny(text, `"'`)
		if at < 0 {
			continue
		}
		foundLine, foundCol = i+1, at
		if foundLine >= line {
			break
		}
	}
	return foundLine, foundCol
}

// syntaxHint says what to do about an error of yaml.v3.
func syntaxHint(msg string) string {
	switch {
	case unknownAnchor().MatchString(msg):
		return "write text that begins with * in quotes"
	case strings.Contains(msg, "cannot start any token"), strings.Contains(msg, "found a tab"):
		return "indent with spaces, and write text that begins with %, @ or ` in quotes"
	case strings.HasPrefix(msg, "did not find expected ','"):
		return "close this bracket"
	case strings.HasPrefix(msg, "did not find expected"):
		return "give the lines of this block the same indentation"
	case strings.HasPrefix(msg, "mapping values are not allowed"):
		return "write text that contains \": \" in quotes, and check the indentation"
	case strings.HasPrefix(msg, "could not find expected ':'"):
		return "write key: value"
	case strings.HasPrefix(msg, "found unexpected end of stream"):
		return "close this quote"
	}
	return "check the indentation, the quotes and the brackets of this line and of the one above"
}
