// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// maxObjectBytes is what an object may take up as JSON. It stays below the 1.5
// MiB that etcd accepts, so that the answer to an object that is too big is a
// readable one.
const maxObjectBytes = 1 << 20

type sized interface {
	policy.ValidatingAdmissionPolicy | policy.ValidatingAdmissionPolicyBinding | policy.ClusterPolicy | policy.Policy
}

// validateSize refuses an object that is too big to be stored. It measures the
// internal object, which the stored one exceeds by apiVersion and kind only.
func validateSize[T sized](object *T, path *field.Path) field.ErrorList {
	encoded, err := json.Marshal(object)
	if err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("encode the object to measure it: %w", err))}
	}
	if len(encoded) <= maxObjectBytes {
		return nil
	}
	tooLong := field.TooLong(path, "", maxObjectBytes)
	tooLong.Detail = fmt.Sprintf("the whole object may not be more than %d bytes as JSON, it has %d: split it up", maxObjectBytes, len(encoded))
	return field.ErrorList{tooLong}
}
