// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import "testing"

func workloads() (ten, thousand, tenThousand, bindings workload) {
	return workload{Name: "10 of 10", Policies: 10, Bindings: 1}, workload{Name: "10 of 1,000", Policies: 1_000, Bindings: 1},
		workload{Name: "10 of 10,000", Policies: 10_000, Bindings: 1}, workload{Name: "1 with 1,000 bindings", Policies: 1, Bindings: 1_000}
}

// BenchmarkJudge measures one request. With 10,000 policies upstream needs minutes
// and gigabytes to compile, so -short leaves that out.
func BenchmarkJudge(b *testing.B) {
	ten, thousand, tenThousand, bindings := workloads()
	for _, w := range []workload{ten, thousand, tenThousand, bindings} {
		b.Run("portcullis/"+w.Name, func(b *testing.B) {
			p := startPortcullis(b, w)
			benchmark(b, func() { p.judge(b) })
		})
		b.Run("upstream/"+w.Name, func(b *testing.B) {
			if testing.Short() && w == tenThousand {
				b.Skip("compiles for minutes")
			}
			u := startUpstream(b, w)
			benchmark(b, func() { u.judge(b) })
		})
	}
}
