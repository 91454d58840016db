// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/pcn-linux/pcn/config"
)

// formula is an arithmetic expression of numbers with units and names, such as
// "min(100Mbps, line_rate / 10)". Rates are in bit/s, times in ns and sizes in bytes.
type formula struct {
	text  string
	names []string // names that it looks up
	eval  func(lookup lookup) (float64, error)
}

// lookup returns the value that a name stands for.
type lookup func(name string) (float64, error)

// parseFormula parses a formula: + - * / ^, parentheses, min(a, b) and max(a, b).
func parseFormula(text string) (*formula, error) {
	p := &formulaParser{rest: text}
	eval, err := p.sum()
	if p.peek(); err == nil && p.rest != "" {
		err = fmt.Errorf("%q is left over", p.rest)
	}
	if err != nil {
		return nil, fmt.Errorf("formula %q: %w", text, err)
	}
	return &formula{text: text, names: p.names, eval: eval}, nil
}

type formulaParser struct {
	rest  string
	names []string
}

type evaluator = func(lookup) (float64, error)

// peek returns the next character that is no space; 0 at the end.
func (p *formulaParser) peek() byte {
	p.rest = strings.TrimLeft(p.rest, " ")
	if p.rest == "" {
		return 0
	}
	return p.rest[0]
}

// take consumes the character if it is next.
func (p *formulaParser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// binary parses operands joined by operators of one precedence, which associate to the left.
func (p *formulaParser) binary(
	operand func() (evaluator, error), operators string,
) (evaluator, error) {
	left, err := operand()
	if err != nil {
		return nil, err
	}
	for p.peek() != 0 && strings.IndexByte(operators, p.peek()) >= 0 {
		operator := p.peek()
		p.take(operator)
		right, err := operand()
		if err != nil {
			return nil, err
		}
		left = apply(arithmetic[operator], left, right)
	}
	return left, nil
}

func (p *formulaParser) sum() (evaluator, error)     { return p.binary(p.product, "+-") }
func (p *formulaParser) product() (evaluator, error) { return p.binary(p.power, "*/") }
func (p *formulaParser) power() (evaluator, error)   { return p.binary(p.operand, "^") }

var arithmetic = map[byte]func(a, b float64) float64{
	'+': func(a, b float64) float64 { return a + b },
	'-': func(a, b float64) float64 { return a - b },
	'*': func(a, b float64) float64 { return a * b },
	'/': func(a, b float64) float64 { return a / b },
	'^': math.Pow,
}

var functions = map[string]func(a, b float64) float64{
	"min": func(a, b float64) float64 { return min(a, b) },
	"max": func(a, b float64) float64 { return max(a, b) },
}

func apply(f func(a, b float64) float64, left, right evaluator) evaluator {
	return func(names lookup) (float64, error) {
		a, err := left(names)
		if err != nil {
			return 0, err
		}
		b, err := right(names)
		return f(a, b), err
	}
}

func (p *formulaParser) operand() (evaluator, error) {
	switch c := p.peek(); {
	case c == '(':
		p.take('(')
		inner, err := p.sum()
		if err == nil && !p.take(')') {
			err = fmt.Errorf("\")\" is missing")
		}
		return inner, err
	case c >= '0' && c <= '9':
		return p.number()
	case isNameStart(rune(c)):
		return p.name()
	default:
		return nil, fmt.Errorf("want a number, a name or \"(\" before %q", p.rest)
	}
}

func isNameStart(c rune) bool { return c == '_' || unicode.IsLetter(c) }

// word consumes the longest prefix of characters that belong.
func (p *formulaParser) word(belongs func(rune) bool) string {
	end := strings.IndexFunc(p.rest, func(c rune) bool { return !belongs(c) })
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// number parses a number, with a unit or without.
func (p *formulaParser) number() (evaluator, error) {
	digits := p.word(func(c rune) bool { return c == '.' || c >= '0' && c <= '9' })
	unit := p.word(unicode.IsLetter)
	value, err := strconv.ParseFloat(digits, 64)
	if unit != "" {
		var q config.Quantity
		q, err = config.ParseQuantity(digits + unit)
		value = q.Value
	}
	if err != nil {
		return nil, err
	}
	return func(lookup) (float64, error) { return value, nil }, nil
}

func (p *formulaParser) name() (evaluator, error) {
	name := p.word(func(c rune) bool { return isNameStart(c) || c == '.' || unicode.IsDigit(c) })
	if !p.take('(') {
		p.names = append(p.names, name)
		return func(names lookup) (float64, error) { return names(name) }, nil
	}
	function, ok := functions[name]
	if !ok {
		return nil, fmt.Errorf("unknown function %q: want min or max", name)
	}
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	if !p.take(',') {
		return nil, fmt.Errorf("%s wants two arguments", name)
	}
	second, err := p.sum()
	if err == nil && !p.take(')') {
		err = fmt.Errorf("\")\" is missing")
	}
	return apply(function, first, second), err
}
