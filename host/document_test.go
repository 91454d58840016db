// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"regexp"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/docs"
	"github.com/pcn-linux/pcn/host"
)

// The configurations in the documents are valid.
func TestConfigurationsInDocuments(t *testing.T) {
	blocks := map[string]*regexp.Regexp{
		"host":    regexp.MustCompile("(?s)```yaml[^\n]*\n(.*?)```"),
		"testbed": regexp.MustCompile(`(?s)testbed.yaml <<END\n(.*?)END`),
	}
	for name, block := range blocks {
		text, err := docs.Text(name)
		qt.Assert(t, qt.IsNil(err))
		found := block.FindAllStringSubmatch(text, -1)
		qt.Check(t, qt.IsTrue(len(found) > 0), qt.Commentf("%s", name))
		for _, yaml := range found {
			_, err := host.Parse(name+".md", []byte(yaml[1]))
			qt.Check(t, qt.IsNil(err), qt.Commentf("%s", yaml[1]))
		}
	}
}
