// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor_test

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
)

// recorded is a random overlay and what Kyverno 1.19.1 made of an object with it. None
// is of those that TestEachElementOnItsOwn and TestElementsWithoutName are about.
type recorded struct {
	Overlay any            `json:"overlay"`
	Object  map[string]any `json:"object"`
	// Result is nil when nothing has changed.
	Result map[string]any `json:"result"`
}

func TestRecorded(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/kyverno.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			var r recorded
			if err := kjson.UnmarshalCaseSensitivePreserveInts(lines.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			if r.Result == nil {
				r.Result = r.Object
			}
			overlay, faults := anchor.Compile(r.Overlay, compiler(), template.Place{})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			got, _, err := overlay.Apply(t.Context(), newRun(), nil, r.Object)
			if err != nil {
				t.Fatal(err)
			}
			if !patch.Equal(r.Result, got) {
				t.Errorf("%v\nof %v\n(-want +got)\n%s", r.Overlay, r.Object, cmp.Diff(r.Result, got))
			}
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
