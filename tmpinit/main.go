package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
	lab "pcn/netns-lab"
	"pcn/netns-lab/experiment"
	"pcn/netns-lab/result"
)

var hol, _ = os.ReadFile("/hol.yaml")

func main() {
	unix.Mount("proc", "/proc", "proc", 0, "")
	unix.Mount("sysfs", "/sys", "sysfs", 0, "")
	unix.Mount("t", "/run", "tmpfs", 0, "")
	b, _ := os.ReadFile("/veth.ko")
	if err := unix.InitModule(b, ""); err != nil {
		fmt.Println("veth", err)
	}
	cl, _ := os.ReadFile("/proc/cmdline")
	scheme := "pfc"
	if strings.Contains(string(cl), "mode=pcn") {
		scheme = "pcn"
	}
	e, err := experiment.Parse("hol.yaml", hol)
	if err == nil {
		r, rerr := lab.Run(context.Background(), e, scheme, func(a, b int64) { fmt.Println("progress", a, b) })
		err = rerr
		if r != nil {
			fmt.Printf("%+v\n", r.Manifest)
			for _, f := range r.Flows[:3] {
				fmt.Printf("%+v\n", f)
			}
			for _, p := range r.Ports {
				fmt.Printf("%+v\n", p)
			}
			for _, o := range result.Evaluate(e, r) {
				fmt.Printf("%v %s: %s bound %s paper %s\n", o.Pass, o.Expect.What, o.Value(), o.Bound(), o.Expect.Paper)
			}
			first, last, n := map[string]int64{}, map[string]int64{}, map[string]int{}
			for _, x := range r.PFC {
				k := x.From + "->" + x.To
				if _, ok := first[k]; !ok {
					first[k] = x.SentNs
				}
				last[k] = x.EffectNs
				n[k]++
			}
			for _, k := range []string{"S1->S0", "S0->H0", "S0->H1", "S1->H2"} {
				fmt.Println("PFC", k, first[k]/1000, last[k]/1000, n[k])
			}
			sum := map[int64]int64{}
			f1 := map[int64]uint64{}
			for _, x := range r.Series {
				if x.Name == "F0" {
					sum[x.TimeNs] += int64(x.RateBps)
				}
				if x.Name == "F1" {
					f1[x.TimeNs] = x.RateBps
				}
			}
			for t := int64(-200000); t < 4000000; t += 100000 {
				fmt.Printf("%d:%.1f/%.1f ", t/100000, float64(sum[t])/1e9, float64(f1[t])/1e9)
			}
			fmt.Println()
			left, _ := os.ReadDir("/run/netns")
			fmt.Println("left", len(left))
		}
	}
	var ve *ebpf.VerifierError
	if errors.As(err, &ve) {
		l := ve.Log
		if len(l) > 70 {
			l = l[len(l)-70:]
		}
		fmt.Println(strings.Join(l, "\n"))
	}
	fmt.Println("RESULT", err)
	os.Stdout.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}
