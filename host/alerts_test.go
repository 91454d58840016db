// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/host"
)

// The dashboard and the alert rules, in packages.
const (
	alertsFile    = "../packaging/alerts.yaml"
	dashboardFile = "../packaging/grafana.json"
)

// Dashboard and alerts name metrics that pcn host serve exports, and events that it counts.
func TestAlertsAndDashboardNameMetrics(t *testing.T) {
	_, peer := wire(t)
	up(t, small)
	connect(t, peer, "pcn").flows(t)
	server := httptest.NewServer(host.New().Handler(1))
	defer server.Close()
	r, err := http.Get(server.URL + "/metrics")
	qt.Assert(t, qt.IsNil(err))
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	qt.Assert(t, qt.IsNil(err))
	exported := regexp.MustCompile(`(?m)^# TYPE (pcn_\w+)`).FindAllSubmatch(text, -1)
	var metrics []string
	for _, m := range exported {
		metrics = append(metrics, string(m[1]))
	}
	for _, file := range []string{alertsFile, dashboardFile} {
		rules, err := os.ReadFile(file)
		qt.Assert(t, qt.IsNil(err))
		used := regexp.MustCompile(`\bpcn_[a-z_]+`).FindAllString(string(rules), -1)
		qt.Check(t, qt.IsTrue(len(used) > 5))
		for _, name := range used {
			qt.Check(t, qt.IsTrue(slices.Contains(metrics, name)),
				qt.Commentf("%s names %s; exported are %v", file, name, metrics))
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	data, err := os.ReadFile(alertsFile)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(yaml.Unmarshal(data, &rules)))
	qt.Assert(t, qt.HasLen(rules.Groups, 1))
	events := 0
	for _, rule := range rules.Groups[0].Rules {
		component := regexp.MustCompile(`component="(\w+)"`).FindStringSubmatch(rule.Expr)
		names := regexp.MustCompile(`event=~?"([\w|]+)"`).FindStringSubmatch(rule.Expr)
		if names == nil {
			continue
		}
		qt.Assert(t, qt.HasLen(component, 2))
		for event := range strings.SplitSeq(names[1], "|") {
			events++
			qt.Check(t, qt.StringContains(string(text),
				`pcn_events_total{component="`+component[1]+`",event="`+event+`"} `))
		}
	}
	qt.Check(t, qt.IsTrue(events > 5))
}

// promtool knows the rules' language. It is in the package prometheus; the microVM has none, so
// this runs before its tests: see TestMain.
func checkAlerts() error {
	path, err := exec.LookPath("promtool")
	if err != nil {
		return nil
	}
	out, err := exec.Command(path, "check", "rules", alertsFile).CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return err
}
