// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionreview

import (
	"runtime"
	"strings"
	"testing"
)

// TestFootprint: no review takes more memory than it is said to, and none of those that
// are common is said to take more than the least that there is room for.
func TestFootprint(t *testing.T) {
	const before, after = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE",
		"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"object":{"spec":[`, `]}}}`
	const size = 512 << 10 // of the lists below
	for _, item := range []string{
		`{"name":"a"},`, `{},`, `[],`, `{"":0},`, `0,`, `1.5,`, `12345678,`, `"",`, `"a",`, `"\u0001",`, `null,`, `[[]],`, `[0],`, `{"a":{}},`, `{"a":[{}]},`,
		`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9},`, `{"a":"b","c":"d"},`,
		`{"a":"` + strings.Repeat("x", 1000) + `"},`,
	} {
		list := strings.Repeat(item, size/len(item))
		body := []byte(before + strings.TrimSuffix(list, ",") + after)
		start := allocated()
		req, err := decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if held, said := allocated()-start+int64(len(body)), footprint(body); held > said {
			t.Errorf("%.30s: a review of %d bytes takes %d, and is said to take %d", item, len(body), held, said)
		}
		runtime.KeepAlive(req)
	}
	pod := []byte(before + strings.Repeat(`{"name":"c","image":"i","env":[{"name":"A","value":"b"}],"ports":[{"containerPort":80}]},`, 50) + `0` + after)
	if said := footprint(pod); said > leastClaim {
		t.Errorf("a review of %d bytes is said to take %d, more than %d", len(pod), said, leastClaim)
	}
}

// allocated is what the heap holds, in bytes.
func allocated() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
