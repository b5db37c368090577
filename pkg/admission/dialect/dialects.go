// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dialect lists the policy languages. It knows nothing else.
package dialect

import (
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// All returns every dialect.
func All() []policy.Dialect {
	return []policy.Dialect{
		cel.New(),
		kyverno.New(),
	}
}
