// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// TestDiverges: what is seen of a policy is reported until the policy is another one.
func TestDiverges(t *testing.T) {
	c := catalog.New([]policy.Dialect{dialecttest.Toy{}})
	id := policy.ID{Kind: "Toy", Name: "a"}
	write := func(forbid string) *policy.Unit {
		t.Helper()
		if err := c.Apply(t.Context(), []catalog.Change{{ID: id, Object: toy("a", forbid)}}); err != nil {
			t.Fatal(err)
		}
		return c.Current().Policy(id)
	}
	unit := write("x")
	heard := 0
	stop := c.Watch(func(policy.ID) { heard++ })
	defer stop()
	heard = 0
	check := func(name, want string, notified int) {
		t.Helper()
		report, ok := c.Report(id)
		if !ok || report.Diverging != want || heard != notified {
			t.Errorf("%s: got %+v and %d notifications, want %q and %d", name, report, heard, want, notified)
		}
		heard = 0
	}
	check("nothing seen", "", 0)
	c.Diverges(unit, "why")
	check("seen", "why", 1)
	c.Diverges(unit, "and why")
	check("seen again", "why", 0)
	next := write("y")
	check("rewritten", "", 1)
	c.Diverges(unit, "late")
	check("of the one before", "", 0)
	c.Diverges(next, "again")
	check("of the new one", "again", 1)
}
