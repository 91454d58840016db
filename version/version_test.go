// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestOfLinker(t *testing.T) {
	qt.Check(t, qt.Equals(Number(), "devel"))
	qt.Check(t, qt.Equals(Commit(), ""))
	number, commit = "1.2.0", "0123456789ab"
	t.Cleanup(func() { number, commit = "", "" })
	qt.Check(t, qt.Equals(Number(), "1.2.0"))
	qt.Check(t, qt.Equals(Commit(), "0123456789ab"))
}

func TestOfBuildInfo(t *testing.T) {
	settings := func(hash, modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "GOARCH", Value: "amd64"}, {Key: "vcs.revision", Value: hash},
			{Key: "vcs.modified", Value: modified},
		}
	}
	const hash = "0123456789abcdef0123456789abcdef01234567"
	for _, test := range []struct {
		version        string
		settings       []debug.BuildSetting
		number, commit string
	}{
		{"", nil, "devel", ""},
		{"(devel)", settings(hash, "false"), "devel", "0123456789ab"},
		{"v1.2.0", nil, "1.2.0", ""},
		{"v0.0.0-20261125000000-0123456789ab+dirty", settings(hash, "true"),
			"0.0.0-20261125000000-0123456789ab+dirty", "0123456789ab-dirty"},
		{"v1.2.0", settings("01", ""), "1.2.0", "01"},
	} {
		info := &debug.BuildInfo{Settings: test.settings}
		info.Main.Version = test.version
		qt.Check(t, qt.Equals(numberOf(info, true), test.number))
		qt.Check(t, qt.Equals(commitOf(info, true), test.commit))
	}
	qt.Check(t, qt.Equals(numberOf(nil, false), "devel"))
	qt.Check(t, qt.Equals(commitOf(nil, false), ""))
}
