// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

// ToRead returns the right that a policy takes from those who bring it for something
// that it reads by itself.
func ToRead(read *policy.Read) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		Verb:        read.Verb,
		APIGroup:    group(read),
		APIVersion:  cmp.Or(read.Resource.Version, all),
		Resource:    cmp.Or(read.Resource.Resource, all),
		Subresource: read.Subresource,
		Namespace:   cmp.Or(read.Namespace, all),
		Name:        cmp.Or(read.Name, all),
	}
}

// group is any where the resource is not known: the core group has an empty name.
func group(read *policy.Read) string {
	if read.Resource.Resource == "" {
		return all
	}
	return read.Resource.Group
}

// ReadText says for people what a policy reads.
func ReadText(read *policy.Read) string {
	text := cmp.Or(read.Resource.Resource, "resources of every kind")
	if read.Resource.Group != "" {
		text += "." + read.Resource.Group
	}
	if read.Subresource != "" {
		text += "/" + read.Subresource
	}
	if read.Name != "" {
		text += fmt.Sprintf(" %q", read.Name)
	}
	if read.Namespace != "" {
		return text + fmt.Sprintf(" in namespace %q", read.Namespace)
	}
	return text + " in all namespaces"
}

// Reads demands of the writer of a valid policy the rights to what it reads by itself,
// each at its field, except for what it has read before the write.
func (w *Writes) Reads(ctx context.Context, reads, before []policy.Read) field.ErrorList {
	writer := CallerOf(ctx, w.authorizer)
	if writer.privileged() {
		return nil
	}
	var errs field.ErrorList
	for i := range reads {
		if slices.ContainsFunc(before, func(old policy.Read) bool { return same(&reads[i], &old) }) {
			continue
		}
		if err := w.read(ctx, writer, &reads[i]); err != nil {
			errs = append(errs, field.Forbidden(reads[i].Field, err.Error()))
		}
	}
	return errs
}

func (w *Writes) read(ctx context.Context, writer Caller, read *policy.Read) error {
	if writer.User == nil {
		return errors.New("cannot identify the user to authorize what the policy reads")
	}
	right := ToRead(read)
	allowed, _, err := writer.May(ctx, &right)
	switch {
	case err != nil:
		return fmt.Errorf("failed to authorize what the policy reads: %w", err)
	case !allowed:
		return fmt.Errorf("user %q must have the right to %s %s, which the policy reads", writer.User.GetName(), read.Verb, ReadText(read))
	}
	return nil
}

func same(a, b *policy.Read) bool {
	return a.Verb == b.Verb && a.Resource == b.Resource && a.Subresource == b.Subresource && a.Namespace == b.Namespace && a.Name == b.Name
}
