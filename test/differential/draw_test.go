// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"encoding/binary"
	"math/rand/v2"
)

// generator makes scenarios and questions of few values, so that they often meet.
// It draws from a seed or from the bytes of a fuzzer.
type generator struct {
	draw func(n int) int
	// focus are the targets that policies and questions of one scenario have in
	// common.
	focus []*target
	// written are expressions of the scenario, which other policies of it may have
	// too, whatever their variables of these names are.
	written []string
	// large says that some objects shall be large.
	large bool
}

func fromSeed(seed uint64) *generator {
	return &generator{draw: rand.New(rand.NewPCG(seed, 0)).IntN}
}

// fromBytes draws zeros when data is used up, so everything that is drawn must
// come to an end with zeros.
func fromBytes(data []byte) *generator {
	return &generator{draw: func(n int) int {
		switch {
		case len(data) == 0:
			return 0
		case n > 256 && len(data) > 1:
			next := int(binary.BigEndian.Uint16(data))
			data = data[2:]
			return next % n
		}
		next := int(data[0])
		data = data[1:]
		return next % n
	}}
}

func pick[T any](g *generator, values ...T) T { return values[g.draw(len(values))] }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.draw(n) == n-1 }

// several returns one to three values, seldom none.
func several[T any](g *generator, values ...T) []T {
	var chosen []T
	for range pick(g, 1, 1, 1, 2, 2, 3, 0) {
		chosen = append(chosen, pick(g, values...))
	}
	return chosen
}
