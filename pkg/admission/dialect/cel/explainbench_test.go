// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

func BenchmarkExplain(b *testing.B) {
	program := compiled(b, cel.New(), validating("object.spec.replicas <= 5")).Policy.Program
	for name, explain := range map[string]*policy.Explain{"without": nil, "with": {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			view := emptyCluster(b)
			for b.Loop() {
				req := deployment()
				program.Evaluate(b.Context(), policy.Input{
					Request: req, Explain: explain, View: view,
					Matched: cluster.Equivalent{Resource: req.RequestResource, Kind: req.RequestKind},
				})
			}
		})
	}
	b.Run("first", func(b *testing.B) {
		view := emptyCluster(b)
		programs := make([]policy.Program, 0, 65)
		dialect := cel.New()
		for range cap(programs) { // more than are kept
			programs = append(programs, compiled(b, dialect, validating("object.spec.replicas <= 5")).Policy.Program)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			req := deployment()
			programs[i%len(programs)].Evaluate(b.Context(), policy.Input{
				Request: req, Explain: &policy.Explain{}, View: view,
				Matched: cluster.Equivalent{Resource: req.RequestResource, Kind: req.RequestKind},
			})
		}
	})
}
