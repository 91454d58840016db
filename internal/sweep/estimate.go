// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pcn-linux/pcn/internal/experiment"
)

const confidence = 0.95

// Estimate is a mean over seeds with its 95% confidence interval. The interval comes from Student's
// t distribution, since the variance is unknown, and ends where the metric's values do. With one
// value, mean, low and high are that value.
type Estimate struct {
	N         int // number of values
	Mean      float64
	Low, High float64   // ends of the interval
	StdDev    float64   // sample standard deviation, divided by N - 1
	Seeds     []float64 // the N values
}

func estimate(values []float64, of experiment.Metric) Estimate {
	switch len(values) {
	case 0:
		return Estimate{}
	case 1:
		return Estimate{N: 1, Mean: values[0], Low: values[0], High: values[0],
			Seeds: values}
	}
	n := float64(len(values))
	mean, std := stat.MeanStdDev(values, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + confidence) / 2)
	half := t * std / math.Sqrt(n)
	least, most := of.Range()
	return Estimate{N: len(values), Seeds: values, Mean: mean, Low: max(mean-half, least),
		High: min(mean+half, most), StdDev: std}
}
