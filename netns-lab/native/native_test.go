// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/launch"
)

// The pool asks for a network by an interface that an engine need not have: this one has it.
var _ launch.Builder = Engine{}

// Sweeps need fingerprints; this machine's own kernel has none.
func TestNativeHasNoFingerprint(t *testing.T) {
	_, err := Engine{}.Fingerprint(job.Job{})
	qt.Check(t, qt.ErrorMatches(err, ".* can't be reproduced: run in microVMs"))
}
