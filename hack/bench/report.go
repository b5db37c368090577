// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// spread is a series of values.
type spread struct{ min, median, max float64 }

// newSpread returns the spread of values, of which there must be one.
func newSpread(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return spread{min: sorted[0], median: median, max: sorted[len(sorted)-1]}
}

// figure is one row of the report.
type figure struct {
	name string
	pick func(*sample) float64
	// digits are those behind the point.
	digits int
}

func figures() []figure {
	return []figure{
		{name: "CPU µs a request", pick: (*sample).microseconds, digits: 1},
		{name: "requests a second", pick: (*sample).throughput},
		{name: "latency p50 µs", pick: func(s *sample) float64 { return s.latency(50) }},
		{name: "latency p99 µs", pick: func(s *sample) float64 { return s.latency(99) }},
		{name: "resident MiB", pick: func(s *sample) float64 { return float64(s.resident) / (1 << 20) }, digits: 1},
	}
}

func (s *sample) microseconds() float64 {
	return float64(s.cpu) / float64(time.Microsecond) / float64(s.requests)
}

func (s *sample) throughput() float64 { return float64(s.requests) / s.elapsed.Seconds() }

// latency returns the time in microseconds within which percent of the requests
// were answered.
func (s *sample) latency(percent int) float64 {
	index := (len(s.latencies)*percent+99)/100 - 1
	return float64(s.latencies[max(index, 0)]) / float64(time.Microsecond)
}

// print writes the medians over all rounds, with the smallest and the largest.
func (r *rounds) print(out io.Writer, targets []*target) {
	fmt.Fprintf(out, "\nMedians over %d rounds (smallest to largest), %d void; ratios to %s of the same round.\n\n", len(r.samples), r.void, targets[0].name)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\t")
	for i, t := range targets {
		fmt.Fprintf(table, "%s\t", t.name)
		if i > 0 {
			fmt.Fprint(table, "ratio\t")
		}
	}
	fmt.Fprintln(table)
	for _, f := range figures() {
		fmt.Fprintf(table, "%s\t", f.name)
		for i := range targets {
			fmt.Fprintf(table, "%s\t", r.of(i, f.pick).text(f.digits))
			if i > 0 {
				fmt.Fprintf(table, "%s\t", r.ratios(i, 0, f.pick).text(2))
			}
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}

func (s spread) text(digits int) string {
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, s.median, digits, s.min, digits, s.max)
}
