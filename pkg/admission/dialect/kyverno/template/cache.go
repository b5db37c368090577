// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"sync"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

const (
	// maxGeneration is the number of expressions in one generation of the cache.
	maxGeneration = 512
	// maxCached is the length of the longest expression in the cache.
	maxCached = 4 << 10
)

// A cache keeps the expressions that were asked for last: between one and two
// generations of them. The zero cache is empty.
type cache struct {
	mu       sync.Mutex
	young    map[string]*jmespath.Expression
	previous map[string]*jmespath.Expression
}

// get returns an expression that is in the cache.
func (c *cache) get(text string) (*jmespath.Expression, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.young[text]; ok {
		return found, true
	}
	found, ok := c.previous[text]
	if ok {
		c.add(text, found)
	}
	return found, ok
}

// put adds an expression, and forgets those that were not asked for lately.
func (c *cache) put(text string, compiled *jmespath.Expression) {
	if len(text) > maxCached {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(text, compiled)
}

func (c *cache) add(text string, compiled *jmespath.Expression) {
	if c.young == nil || len(c.young) >= maxGeneration {
		c.young, c.previous = map[string]*jmespath.Expression{}, c.young
	}
	c.young[text] = compiled
}
