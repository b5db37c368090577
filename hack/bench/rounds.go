// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
)

// maxVoidShare is the part of the rounds that may be void, as a divisor.
const maxVoidShare = 4

// rounds are the samples of all rounds that count.
type rounds struct {
	samples [][]*sample // by round, then by target
	void    int
	fault   error // the last one that made a round void
}

// playRounds drives the targets one after the other, round by round. Each round
// begins with another target, so that none always has the same predecessor. A
// round in which a target failed is void for all of them.
func playRounds(ctx context.Context, o *options, targets []*target, question *review, out io.Writer) (*rounds, error) {
	r := &rounds{}
	for i := range o.rounds {
		samples, err := playRound(ctx, o, targets, question, i)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.void++
			r.fault = err
			fmt.Fprintf(out, "round %d is void: %v\n", i+1, err)
			continue
		}
		fmt.Fprintf(out, "round %d:", i+1)
		for j, s := range samples {
			fmt.Fprintf(out, "  %s %.1f", targets[j].name, s.microseconds())
		}
		fmt.Fprintln(out, "  (CPU µs a request)")
		r.samples = append(r.samples, samples)
	}
	return r, nil
}

func playRound(ctx context.Context, o *options, targets []*target, question *review, number int) ([]*sample, error) {
	samples := make([]*sample, len(targets))
	for i := range targets {
		next := (number + i) % len(targets)
		s, err := drive(ctx, targets[next], question, o.load)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", targets[next].name, err)
		}
		samples[next] = s
	}
	return samples, nil
}

// believable says whether too many rounds are void to believe the others.
func (r *rounds) believable() error {
	if len(r.samples) == 0 || r.void*maxVoidShare > len(r.samples)+r.void {
		return fmt.Errorf("%d of %d rounds are void: %w", r.void, len(r.samples)+r.void, r.fault)
	}
	return nil
}

// of returns what pick makes of the samples of a target.
func (r *rounds) of(target int, pick func(*sample) float64) spread {
	values := make([]float64, len(r.samples))
	for i, samples := range r.samples {
		values[i] = pick(samples[target])
	}
	return newSpread(values)
}

// ratios returns the same as multiples of another target in the same round.
func (r *rounds) ratios(target, to int, pick func(*sample) float64) spread {
	values := make([]float64, len(r.samples))
	for i, samples := range r.samples {
		values[i] = pick(samples[target]) / pick(samples[to])
	}
	return newSpread(values)
}
