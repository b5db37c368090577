// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"fmt"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// BenchmarkApply measures what one write costs beside compiling, by what is
// installed.
func BenchmarkApply(b *testing.B) {
	for _, all := range []int{10, 10_000} {
		b.Run(fmt.Sprintf("1into%d", all), func(b *testing.B) {
			c := catalog.New([]policy.Dialect{dialecttest.Toy{}})
			write := func(i int, forbid string) catalog.Change {
				name := fmt.Sprint("p", i)
				return catalog.Change{ID: policy.ID{Kind: "Toy", Name: name}, Object: toy(name, forbid)}
			}
			var changes []catalog.Change
			for i := range all {
				changes = append(changes, write(i, "x"))
			}
			if err := c.Apply(b.Context(), changes); err != nil {
				b.Fatal(err)
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				if err := c.Apply(b.Context(), []catalog.Change{write(n%all, fmt.Sprint(n))}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
