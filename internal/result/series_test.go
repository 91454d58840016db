// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const seriesHeader = "time_ns,kind,name,rate_bps,queue_bytes,queue_max_bytes,marked_packets," +
	"cwnd_packets,srtt_ns,cnps\n"

// All that is read of series.csv is what the reader of CSV reads, and so are errors.
func TestSeriesAreReadAsCSV(t *testing.T) {
	plain := seriesHeader + "-1000,port,S0->H1,40,1,2,3,,,\n0,flow,F0,5,,,6,,,\n" +
		"0,sender,F0,7,,,,8,-9,10\n0,flow,a b 'c' ü,999999999999999999,,,0,,,\n"
	parsed, ok := parseSeries([]byte(plain))
	qt.Assert(t, qt.IsTrue(ok))
	qt.Check(t, qt.HasLen(parsed, 4))
	for _, text := range []string{
		plain,
		seriesHeader,
		"",
		strings.TrimSuffix(plain, "\n"),
		strings.ReplaceAll(plain, "\n", "\r\n"),
		strings.Replace(plain, ",cwnd_packets,srtt_ns,cnps", "", 1),
		seriesHeader + "\n",
		seriesHeader + "0,flow,\"F,0\",5,,,6,,,\n",
		seriesHeader + "0,flow,\"F\n0\",5,,,6,,,\n",
		seriesHeader + "0,flow,F\n1,5,,,6,,,\n",
		seriesHeader + "0,flow,,5,,,6,,,\n",
		seriesHeader + "0,flow,F0,18446744073709551615,,,6,,,\n",
		seriesHeader + "0,flow,F0,18446744073709551616,,,6,,,\n",
		seriesHeader + "9223372036854775808,flow,F0,5,,,6,,,\n",
		seriesHeader + "0,flow,F0,-5,,,6,,,\n",
		seriesHeader + "0,flow,F0,+5,,,6,,,\n",
		seriesHeader + "-,flow,F0,5,,,6,,,\n",
		seriesHeader + "0,flow,F0,5,,,6,,\n",
		seriesHeader + "0,flow,F0,5,,,6,,,,\n",
		seriesHeader + "0,flow,F0,5,,,,,,\n",
		seriesHeader + "0,flow,F0,5,1,,6,,,\n",
		seriesHeader + "0,port,F0,5,,,6,,,\n",
		seriesHeader + "0,sender,F0,7,,,,8,9,x\n",
		seriesHeader + "0,router,F0,5,,,6,,,\n",
		seriesHeader + "0,flow",
		seriesHeader + "0,flow,F0",
	} {
		t.Run(text, func(t *testing.T) {
			got, gotErr := decodeSeries([]byte(text))
			want, wantErr := decodeSeriesRows([]byte(text))
			qt.Check(t, qt.DeepEquals(got, want))
			qt.Check(t, qt.Equals(fmt.Sprint(gotErr), fmt.Sprint(wantErr)))
		})
	}
}
