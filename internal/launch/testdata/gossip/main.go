// SPDX-License-Identifier: Apache-2.0

// Command gossip is a node of a cluster whose members hear of each other, and of each other's
// death, by hashicorp/memberlist. It prints what it hears, and how many it then knows alive. As
// agents built on that library do, it joins again and again: parts of a cluster that hold each
// other for dead do not find together by gossip alone.
//
//	gossip SELF SEED
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"time"

	"github.com/hashicorp/memberlist"
)

const rejoin = 10 * time.Second

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// run has the node SELF live for ever, in the cluster that SEED is in. Both are names of hosts.
func run(self, seed string) error {
	address, err := net.ResolveIPAddr("ip4", self)
	if err != nil {
		return err
	}
	heard := make(chan memberlist.NodeEvent, 64)
	config := memberlist.DefaultLANConfig()
	config.Name = self
	config.BindAddr = address.String()
	config.Events = &memberlist.ChannelEventDelegate{Ch: heard}
	config.Logger = log.New(io.Discard, "", 0)
	list, err := memberlist.Create(config)
	if err != nil {
		return err
	}
	go func() {
		for {
			_, _ = list.Join([]string{seed}) // in vain while the seed is cut off
			time.Sleep(rejoin)
		}
	}()
	for alive := 0; ; {
		event := <-heard
		what := "died"
		if event.Event == memberlist.NodeJoin {
			what = "lives"
			alive++
		} else {
			alive--
		}
		ms := time.Now().UnixMilli() % 60_000
		fmt.Printf("%2d.%03d s: %s %s, %d alive\n", ms/1000, ms%1000, event.Node.Name, what, alive)
	}
}
