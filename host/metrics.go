// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics and their labels. Labels have few values: components, congestion controls and names of
// counters. Flows come and go, so the user limits how many have their own series.
var (
	descComponent = desc("component_ok", "1 if the component is whole and attached.", "component")
	descCount     = desc("events_total", "What a component's programs counted.", "component",
		"event")
	descFlows = desc("flows", "Live flows.", "control")
	descNoECN = desc("flows_without_ecn",
		"Live flows that negotiated no ECN, so that nothing is marked.", "control")
	descDoubt = desc("flows_in_doubt",
		"Live flows that have a TCP window instead of their control, by the reason.", "control",
		"reason")
	descRate    = desc("send_rate_bps", "Sum of the rates that live flows may send at.", "control")
	descMinRate = desc("send_rate_min_bps", "The least of them.", "control")
	descMarked  = desc("live_marked_packets", "Marked packets of live flows.", "control")
	descLosses  = desc("live_losses", "Times that a loss cut the rate of a live flow.", "control")
	descSRTT    = desc("srtt_max_seconds", "The longest smoothed round trip of a live flow.",
		"control")
	descFlowRate = desc("flow_send_rate_bps",
		"Rate of one of the fastest flows.", "control", "src", "dst")
	descFlowSRTT = desc("flow_srtt_seconds",
		"Smoothed round trip of one of the fastest flows.", "control", "src", "dst")
	descReadError = desc("read_error", "1 if the host's state could not be read.")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pcn_"+name, help, labels, nil)
}

// collector reads the host at each scrape.
type collector struct {
	h        *Host
	maxFlows int
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descComponent, descCount, descFlows, descNoECN, descDoubt, descRate, descMinRate,
		descMarked, descLosses, descSRTT, descFlowRate, descFlowSRTT, descReadError,
	} {
		to <- d
	}
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s, err := c.h.Status(context.Background(), nil)
	if err != nil {
		gauge(descReadError, 1)
		return
	}
	flows := s.liveFlows()
	gauge(descReadError, 0)
	for _, one := range s.Components {
		gauge(descComponent, float64(boolToInt(len(one.Problems) == 0)), one.Name)
		for event, n := range one.Counts {
			if event == flowsCount || event == noECNCount {
				continue
			}
			to <- prometheus.MustNewConstMetric(
				descCount, prometheus.CounterValue, float64(n), one.Name, event)
		}
		if control, ok := strings.CutPrefix(one.Name, ControlPrefix); ok {
			collectFlows(gauge, control, flows)
		}
	}
	slices.SortStableFunc(flows, func(a, b LiveFlow) int {
		return -cmp.Compare(a.SendRateBps, b.SendRateBps)
	})
	for _, f := range flows[:min(c.maxFlows, len(flows))] {
		gauge(descFlowRate, float64(f.SendRateBps), f.Control, f.Src.String(), f.Dst.String())
		gauge(descFlowSRTT, f.SRTT.Seconds(), f.Control, f.Src.String(), f.Dst.String())
	}
}

func collectFlows(
	gauge func(*prometheus.Desc, float64, ...string), control string, flows []LiveFlow,
) {
	var n, noECN, rate, least, marked, losses, srtt float64
	doubt := map[string]float64{"new": 0, "no_ecn": 0}
	for reason := range doubtAdvice {
		doubt[reason] = 0
	}
	for _, f := range flows {
		if f.Control != control {
			continue
		}
		n++
		noECN += float64(boolToInt(!f.ECN))
		if f.Doubt != "" {
			doubt[f.Doubt]++
		}
		rate += float64(f.SendRateBps)
		if f.SendRateBps != 0 && (least == 0 || float64(f.SendRateBps) < least) {
			least = float64(f.SendRateBps)
		}
		marked += float64(f.MarkedPackets)
		losses += float64(f.Losses)
		srtt = max(srtt, f.SRTT.Seconds())
	}
	gauge(descFlows, n, control)
	gauge(descNoECN, noECN, control)
	for reason, flows := range doubt {
		gauge(descDoubt, flows, control, reason)
	}
	gauge(descRate, rate, control)
	gauge(descMinRate, least, control)
	gauge(descMarked, marked, control)
	gauge(descLosses, losses, control)
	gauge(descSRTT, srtt, control)
}

// Handler serves /metrics for Prometheus and /healthz. The maxFlows fastest flows have their own
// series. /healthz answers 200 if all components are whole and attached.
func (h *Host) Handler(maxFlows int) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collector{h, maxFlows},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		s, err := h.Status(r.Context(), nil)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if s.OK() && len(s.Components) > 0 {
			fmt.Fprintln(w, "ok")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		if len(s.Components) == 0 {
			fmt.Fprintln(w, "nothing runs: pcn host up")
		}
		for _, c := range s.Components {
			for _, p := range c.Problems {
				fmt.Fprintf(w, "%s: %s\n", c.Name, p)
			}
		}
	})
	return mux
}
