package report

import (
	"os"
	"testing"
)

func TestDump(t *testing.T) {
	e := load(t)
	os.WriteFile("/tmp/w/report.html", []byte(render(t, e, fig2(e))), 0o644)
}
