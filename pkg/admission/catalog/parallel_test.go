// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// pairs compiles two objects at the same time, or none.
type pairs struct {
	dialecttest.Toy
	meeting chan struct{}
	alone   atomic.Bool
}

func (p *pairs) Compile(ctx context.Context, obj apiruntime.Object) (*policy.Unit, field.ErrorList) {
	select {
	case p.meeting <- struct{}{}:
	case <-p.meeting:
	case <-time.After(30 * time.Second):
		p.alone.Store(true)
	}
	return p.Toy.Compile(ctx, obj)
}

// TestApplyCompilesInParallel: many policies take as many cores as there are.
func TestApplyCompilesInParallel(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("there is one core")
	}
	dialect := &pairs{meeting: make(chan struct{})}
	var changes []catalog.Change
	for i := range 10 {
		name := fmt.Sprint("p", i)
		changes = append(changes, catalog.Change{ID: policy.ID{Kind: "Toy", Name: name}, Object: toy(name, "x")})
	}
	c := catalog.New([]policy.Dialect{dialect})
	if err := c.Apply(t.Context(), changes); err != nil || dialect.alone.Load() || c.Current().Len() != len(changes) {
		t.Errorf("error %v, %d policies in force, compiled one after the other %v", err, c.Current().Len(), dialect.alone.Load())
	}
}
