// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package intern_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/admission/internal/intern"
)

type value struct{ text *string }

func newValue(text string) *value { return &value{&text} }

func TestEqualValuesAreOne(t *testing.T) {
	var table intern.Table[string, value]
	a, b := table.Intern("a", newValue("a")), table.Intern("b", newValue("b"))
	if again := table.Intern("a", newValue("a")); again != a || again == b {
		t.Errorf("got %p again, want %p", again, a)
	}
	if table.Len() != 2 {
		t.Errorf("the table holds %d values, want 2", table.Len())
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

// TestUnusedValuesAreForgotten: a value that comes back after that is the one in
// use.
func TestUnusedValuesAreForgotten(t *testing.T) {
	var table intern.Table[string, value]
	kept := table.Intern("kept", newValue("kept"))
	for i := range 1000 {
		k := fmt.Sprint("k", i%100)
		if got := table.Intern(k, newValue(k)); *got.text != k {
			t.Fatalf("got %q for %q", *got.text, k)
		}
		if i%250 == 0 {
			runtime.GC()
		}
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		runtime.GC()
		return table.Len() == 1, nil
	})
	if err != nil {
		t.Fatalf("%d values are left, want the one in use", table.Len())
	}
	if got := table.Intern("kept", newValue("kept")); got != kept {
		t.Error("a value in use was forgotten")
	}
	runtime.KeepAlive(kept)
}

func TestConcurrentUse(t *testing.T) {
	var table intern.Table[int, value]
	var group sync.WaitGroup
	got := make([][10]*value, 8)
	for g := range got {
		group.Go(func() {
			for i := range 10_000 {
				got[g][i%10] = table.Intern(i%10, newValue("x"))
			}
		})
	}
	group.Wait()
	for g := range got {
		if got[g] != got[0] {
			t.Fatal("equal values in use differ")
		}
	}
}
