// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/host"
)

func TestReadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	const digits = "000102030405060708090a0b0c0d0e0f\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(digits), 0o600)))
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "",
		0o644: "read the key: .*key has mode 0644, so others than its owner may know the key: .*",
		0o640: ".*has mode 0640.*", 0o620: ".*has mode 0620.*", 0o604: ".*has mode 0604.*",
	} {
		qt.Assert(t, qt.IsNil(os.Chmod(path, mode)))
		key, err := host.ReadKey(path)
		if want != "" {
			qt.Check(t, qt.ErrorMatches(err, want))
			continue
		}
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(key[15], 15))
	}
}

// Who owns a file can read it, and give others the right.
func TestKeyOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	path := filepath.Join(t.TempDir(), "key")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("000102030405060708090a0b0c0d0e0f\n"), 0o600)))
	qt.Assert(t, qt.IsNil(os.Chown(path, 65534, 65534)))
	_, err := host.ReadKey(path)
	qt.Check(t, qt.ErrorMatches(err, "read the key: .*/key belongs to user 65534, who may .*"))
}

// A key is made once, for its owner alone, and is used afterwards.
func TestMakeKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cnp.key")
	made, err := host.MakeKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(made))
	key, err := host.ReadKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Not(qt.Equals(key, cnp.Key{})))
	made, err = host.MakeKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsFalse(made))
	again, err := host.ReadKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(again, key))
	_, err = host.MakeKey(filepath.Join(path, "not a folder"))
	qt.Check(t, qt.ErrorMatches(err, "make a key: .*"))
}

// A file's keys sign and are wanted, on each host that has them; without the key nothing changes.
func TestKeysOfTheFile(t *testing.T) {
	wire(t)
	path := filepath.Join(t.TempDir(), "cnp.key")
	text := rpConfig("") + "np: {interfaces: [veth0], T: 1ms}\nkeys: " + path + "\n"
	for _, try := range []func(*host.Config) ([]host.Change, error){
		func(c *host.Config) ([]host.Change, error) { return host.New().Up(t.Context(), c) },
		func(c *host.Config) ([]host.Change, error) { return host.New().Preview(t.Context(), c) },
	} {
		_, err := try(parse(t, text))
		qt.Check(t, qt.ErrorMatches(err, "read the key: .*no such file.*: make it once, on one "+
			"host, with pcn host up --keys .*/cnp.key, and copy it to all others"))
	}
	leavesNothing(t)

	_, err := host.MakeKey(path)
	qt.Assert(t, qt.IsNil(err))
	up(t, text)
	s, err := host.New().Status(t.Context(), parse(t, text))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(s.OK()), qt.Commentf("%+v", s))
	qt.Check(t, qt.IsTrue(slices.Contains(settingsOf(t, "rp"),
		host.Setting{Key: "require_tag", Value: "true"})))
	setClock(t, time.Second)
	t.Cleanup(func() { setClock(t, -time.Second) })
	for _, c := range statusOf(t).Components {
		if c.Name == "np" || c.Name == "rp" {
			qt.Check(t, qt.HasLen(c.Problems, 1), qt.Commentf("%s has no key", c.Name))
		}
	}
}

// While keys are rolled out, a host may sign, and still obey what is not signed.
func TestKeysThatAreNotRequired(t *testing.T) {
	c := parse(t, rpConfig(", require_tag: false")+"keys: /etc/pcn/cnp.key\n")
	qt.Check(t, qt.IsFalse(c.RP.RequireTag))
	_, err := host.Parse("f.yaml", []byte("rtt: 1ms\ncontrols: {ldcp: {}}\nkeys: /a\n"))
	qt.Check(t, qt.ErrorMatches(err,
		"f.yaml:3:.*nothing signs or checks CNPs: neither np nor rp .*"))
}
