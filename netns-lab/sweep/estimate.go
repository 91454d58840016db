// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// confidence is that of all intervals.
const confidence = 0.95

// Estimate is a mean over seeds, with its interval of 95% confidence: by Student's t distribution, as the variance is not
// known. With one value there is no interval, and all is that value.
type Estimate struct {
	N         int
	Mean      float64
	Low, High float64 // of the interval
	StdDev    float64 // of the values, with N - 1
}

func estimate(values []float64) Estimate {
	switch len(values) {
	case 0:
		return Estimate{}
	case 1:
		return Estimate{N: 1, Mean: values[0], Low: values[0], High: values[0]}
	}
	n := float64(len(values))
	mean, std := stat.MeanStdDev(values, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + confidence) / 2)
	half := t * std / math.Sqrt(n)
	return Estimate{N: len(values), Mean: mean, Low: mean - half, High: mean + half, StdDev: std}
}
