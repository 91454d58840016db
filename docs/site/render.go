// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown reads what GitHub reads. Raw HTML is let through: the documents are ours.
func markdown() goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe()),
	)
}

// render makes a page of its Markdown.
func (s *site) render(p *page, source string) error {
	src := []byte(source)
	md := markdown()
	tree := md.Parser().Parse(
		text.NewReader(src), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))),
	)
	p.ids = map[string]bool{}
	chapter := chapter{URL: p.URL}
	add := func() {
		if chapter.Title != "" {
			chapter.Text = strings.Join(strings.Fields(chapter.Text), " ")
			p.chapters = append(p.chapters, chapter)
		}
	}
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			add()
			chapter = p.heading(n, src)
		case *ast.Link:
			return ast.WalkContinue, s.relink(p, &n.Destination)
		case *ast.Image:
			return ast.WalkContinue, s.relink(p, &n.Destination)
		case *ast.Text:
			chapter.Text += string(n.Segment.Value(src))
			if n.SoftLineBreak() || n.NextSibling() == nil {
				chapter.Text += " "
			}
		case *ast.FencedCodeBlock:
			chapter.Text += linesOf(n, src) + " "
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	add()
	if p.Title == "" {
		return fmt.Errorf("the document has no heading")
	}
	for i := range p.chapters {
		p.chapters[i].Page = p.Title
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, src, tree); err != nil {
		return fmt.Errorf("render: %w", err)
	}
	// Wide tables scroll by themselves, so that the page does not.
	body := strings.ReplaceAll(out.String(), "<table>", `<div class="table"><table>`)
	p.Body = template.HTML(strings.ReplaceAll(body, "</table>", "</table></div>"))
	return nil
}

// heading notes a heading's anchor, and begins its chapter.
func (p *page) heading(n *ast.Heading, src []byte) chapter {
	title := textOf(n, src)
	url := p.URL
	if id, ok := n.AttributeString("id"); ok {
		anchor := string(id.([]byte))
		p.ids[anchor] = true
		if p.Title != "" {
			url += "#" + anchor
		}
	}
	p.Title = cmp.Or(p.Title, title)
	return chapter{URL: url, Title: title}
}

// relink makes a link of the repository one of the site.
func (s *site) relink(p *page, destination *[]byte) error {
	to, err := s.target(p.Path, string(*destination))
	if err != nil {
		return err
	}
	*destination = []byte(to)
	p.links = append(p.links, to)
	return nil
}

// textOf returns the text within a node, without its marks.
func textOf(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(src))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

func linesOf(n ast.Node, src []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(src))
	}
	return b.String()
}
