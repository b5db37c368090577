// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// Below returns the path of what parts lead to within the field at path.
func Below(path *field.Path, parts []string) *field.Path {
	for _, part := range parts {
		if index, err := strconv.Atoi(part); err == nil && index >= 0 {
			path = path.Index(index)
			continue
		}
		path = path.Child(part)
	}
	return path
}

// At returns the faults of a value that is the field at path, as a policy language
// reports them: those that come later have the Origin policy.OriginRequest.
func At(faults []Fault, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range faults {
		err := field.Invalid(Below(path, faults[i].Path), field.OmitValueType{}, faults[i].Detail)
		if faults[i].Later {
			err = err.WithOrigin(policy.OriginRequest)
		}
		errs = append(errs, err)
	}
	return errs
}
