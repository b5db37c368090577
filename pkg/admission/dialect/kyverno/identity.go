// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// sameIdentity fails for a rule that makes another object of the one that the request is
// about. An API server refuses most of that with an error that names no policy, and
// overwrites the uid of a new object without a word; here it is an error of the rule. A
// new object may get another name: API servers store it under that one. What is changed
// is named, and not to what: that may come from what the caller may not read.
func sameIdentity(req *request.Request, before, after map[string]any) error {
	old, _ := before["metadata"].(map[string]any)
	now, _ := after["metadata"].(map[string]any)
	isNew := req.Operation == admission.Create && req.SubResource == ""
	var changed []string
	for _, field := range [...]struct {
		name     string
		old, now any
		may      bool
	}{
		{"apiVersion", before["apiVersion"], after["apiVersion"], false},
		{"kind", before["kind"], after["kind"], false},
		// The API server would have written that of the request.
		{"metadata.namespace", old["namespace"], now["namespace"], req.Namespace != "" && now["namespace"] == req.Namespace},
		{"metadata.uid", old["uid"], now["uid"], false},
		{"metadata.name", old["name"], now["name"], isNew},
	} {
		if !field.may && !patch.Equal(orNothing(field.old), orNothing(field.now)) {
			changed = append(changed, field.name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return fmt.Errorf("it changes %s, and with that which object it is: leave it as it was", strings.Join(changed, ", "))
}

// orNothing returns nil for the empty text, which says no more.
func orNothing(value any) any {
	if value == "" {
		return nil
	}
	return value
}
