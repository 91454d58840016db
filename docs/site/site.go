// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed nav.yaml
var navigation []byte

//go:embed assets/page.html
var pageHTML string

//go:embed assets/style.css
var styleCSS []byte

//go:embed assets/search.js
var searchJS []byte

// repository is where links to sources lead, which are not part of the site.
const repository = "https://github.com/pcn-linux/pcn/blob/main/"

// site is a set of pages, in reading order.
type site struct {
	sections  []section
	byPath    map[string]*page
	root      string
	simulator *simulatorSite // nil: the page says that it lacks it
}

// section is a part of the navigation.
type section struct {
	Title string
	Pages []*page
}

// page is a document. Its path is that of its Markdown file in the repository.
type page struct {
	Path, URL, Title string
	Body             template.HTML
	chapters         []chapter
	links            []string // as they stand in the HTML
	ids              map[string]bool
}

// chapter is what is found by a search: the text below one heading.
type chapter struct {
	Page  string `json:"p"`
	URL   string `json:"u"`
	Title string `json:"t"`
	Text  string `json:"x"`
}

// load reads and renders all pages of the navigation. generated has the text of those that are not
// files, by their paths.
func load(root, figures string, generated map[string]string) (*site, error) {
	var nav struct {
		Sections []struct {
			Title string
			Pages []string
		}
	}
	if err := yaml.Unmarshal(navigation, &nav); err != nil {
		return nil, fmt.Errorf("nav.yaml: %w", err)
	}
	s := &site{byPath: map[string]*page{}, root: root}
	texts := map[string]string{}
	for _, part := range nav.Sections {
		var pages []*page
		names, err := s.pagesOf(part.Pages)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, isGenerated := generated[name]
			if !isGenerated {
				data, err := os.ReadFile(filepath.Join(root, name))
				if err != nil {
					return nil, fmt.Errorf("nav.yaml names a page that can't be read: %w", err)
				}
				text = string(data)
			}
			p := &page{Path: name, URL: urlOf(name)}
			texts[name], s.byPath[name] = text, p
			pages = append(pages, p)
		}
		s.sections = append(s.sections, section{part.Title, pages})
	}
	for name, p := range s.byPath {
		text, err := expand(texts[name], root, figures)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := s.render(p, text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

// pagesOf returns the pages of a section. An entry with a * stands for all files of that form that
// no entry before it has named.
func (s *site) pagesOf(entries []string) ([]string, error) {
	var names []string
	for _, entry := range entries {
		if !strings.Contains(entry, "*") {
			names = append(names, entry)
			continue
		}
		files, err := fs.Glob(os.DirFS(s.root), entry)
		if err != nil {
			return nil, fmt.Errorf("nav.yaml: %s: %w", entry, err)
		}
		for _, name := range files {
			if s.byPath[name] == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// urlOf returns a page's file in the site. All are in one folder, so that relative links are short.
func urlOf(name string) string {
	if name == "README.md" {
		return "index.html"
	}
	name = strings.TrimSuffix(name, ".md")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "docs/"), "generated/")
	return strings.ToLower(strings.ReplaceAll(name, "/", "-")) + ".html"
}

var (
	includeLine = regexp.MustCompile(`(?m)^<!-- include (\S+)#(\S+) -->$`)
	figureLine  = regexp.MustCompile(`(?m)^<!-- figure (\S+): (.*) -->$`)
)

// expand puts the chapters and figures of other files where a document asks for them.
func expand(text, root, figures string) (string, error) {
	var failed error
	text = includeLine.ReplaceAllStringFunc(text, func(line string) string {
		m := includeLine.FindStringSubmatch(line)
		chapter, err := chapterOf(filepath.Join(root, m[1]), m[2])
		failed = errors.Join(failed, err)
		return chapter
	})
	text = figureLine.ReplaceAllStringFunc(text, func(line string) string {
		m := figureLine.FindStringSubmatch(line)
		if figures == "" {
			return ""
		}
		svg, err := os.ReadFile(filepath.Join(figures, m[1]+".svg"))
		failed = errors.Join(failed, err)
		return fmt.Sprintf("<figure>\n%s\n<figcaption>%s</figcaption>\n</figure>\n",
			withoutBlankLines(svg), template.HTMLEscapeString(m[2]))
	})
	if failed != nil {
		return "", failed
	}
	return withExperiments(strings.Replace(text, "<!-- simulator -->\n", simulatorHTML, 1))
}

// withoutBlankLines makes an SVG one block of HTML to Markdown.
func withoutBlankLines(svg []byte) string {
	return regexp.MustCompile(`\n\s*\n`).ReplaceAllString(string(bytes.TrimSpace(svg)), "\n")
}

// chapterOf returns the text below a heading of the second level, up to the next one.
func chapterOf(file, heading string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for _, part := range strings.Split(string(data), "\n## ")[1:] {
		if title, text, _ := strings.Cut(part, "\n"); title == heading {
			return text, nil
		}
	}
	return "", fmt.Errorf("%s has no chapter %q", file, heading)
}

// pages returns all pages in reading order.
func (s *site) pages() []*page {
	var pages []*page
	for _, part := range s.sections {
		pages = append(pages, part.Pages...)
	}
	return pages
}

// Contents returns the page's chapters, if it has several.
func (p *page) Contents() []chapter {
	if len(p.chapters) < 4 {
		return nil // the page's own, and at most two more: they are in sight
	}
	return p.chapters[1:]
}

// write writes the site to a folder, which it empties first if it is one of an earlier site.
func (s *site) write(out string) error {
	if err := empty(out); err != nil {
		return err
	}
	layout, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("layout: %w", err)
	}
	files := map[string][]byte{"style.css": styleCSS}
	var all []chapter
	pages := s.pages()
	for i, p := range pages {
		var html bytes.Buffer
		data := struct {
			*page
			Sections             []section
			Here, Previous, Next *page
		}{page: p, Sections: s.sections, Here: p}
		if i > 0 {
			data.Previous = pages[i-1]
		}
		if i+1 < len(pages) {
			data.Next = pages[i+1]
		}
		if err := layout.Execute(&html, data); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
		files[p.URL] = html.Bytes()
		all = append(all, p.chapters...)
	}
	index, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("index: %w", err)
	}
	files["search.js"] = fmt.Appendf(nil, "const chapters = %s;\n%s", index, searchJS)
	if s.simulator != nil {
		s.simulator.addTo(files)
	}
	if err := s.pictures(files); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return fmt.Errorf("write the site: %w", err)
		}
	}
	return nil
}

// pictures adds the pictures of the documents' folder.
func (s *site) pictures(files map[string][]byte) error {
	found, err := filepath.Glob(filepath.Join(s.root, "docs/*.svg"))
	if err != nil {
		return err
	}
	for _, name := range found {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read a picture: %w", err)
		}
		files[filepath.Base(name)] = data
	}
	return nil
}

// empty makes a folder, and removes an earlier site in it. It refuses to remove anything else.
func empty(out string) error {
	_, err := os.Stat(filepath.Join(out, "search.js"))
	switch entries, readErr := os.ReadDir(out); {
	case err == nil:
		if err := os.RemoveAll(out); err != nil {
			return fmt.Errorf("remove the earlier site: %w", err)
		}
	case readErr == nil && len(entries) > 0:
		return fmt.Errorf("%s has files that are no site: want a new or empty folder", out)
	case readErr != nil && !errors.Is(readErr, fs.ErrNotExist):
		return fmt.Errorf("look into %s: %w", out, readErr)
	}
	return os.MkdirAll(out, 0o755)
}

// target returns where a link of a document leads: to a page, a picture, or a source.
func (s *site) target(from, link string) (string, error) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "#") ||
		strings.HasPrefix(link, "mailto:") {
		return link, nil
	}
	file, anchor, _ := strings.Cut(link, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	full := path.Join(path.Dir(from), file)
	if p, ok := s.byPath[full]; ok {
		return p.URL + anchor, nil
	}
	if p, ok := s.byPath[strings.TrimSuffix(path.Join("generated", path.Base(file)), ".html")]; ok {
		return p.URL + anchor, nil
	}
	if _, err := os.Stat(filepath.Join(s.root, full)); err != nil {
		return "", fmt.Errorf("link to %q: there is no such page or file", link)
	}
	if strings.HasSuffix(full, ".svg") {
		return path.Base(full), nil
	}
	return repository + full + anchor, nil
}
