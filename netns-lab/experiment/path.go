// SPDX-License-Identifier: Apache-2.0

package experiment

// Path returns the links from one host to another: of several shortest paths, the one of the first port of each switch.
// There is none if no path leads there.
func (r *Routes) Path(from, to int) []Link {
	if r.Hops(from, to) == 0 {
		return nil
	}
	first := r.access[from]
	path := []Link{r.network.Links[first.port/2]}
	for at := first.peer; at != to; {
		port := r.Ports(at, to)[0]
		link := r.network.Links[port/2]
		path = append(path, link)
		at = r.number[link.A]
		if port%2 == 0 { // it is A's
			at = r.number[link.B]
		}
	}
	return path
}
