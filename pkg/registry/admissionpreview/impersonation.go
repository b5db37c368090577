// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"
	"maps"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// maxImpersonated bounds the rights that one preview asks for: groups and values
// of extra.
const maxImpersonated = 500

// judgeAs refuses a preview whose request has a user that its caller may not be.
func (c caller) judgeAs(ctx context.Context, preview *policyapi.AdmissionPreview) error {
	if preview.Spec.Request == nil || preview.Spec.Request.UserInfo == nil {
		return nil
	}
	as, path := preview.Spec.Request.UserInfo, field.NewPath("spec", "request", "userInfo")
	parts := len(as.Groups)
	for _, values := range as.Extra {
		parts += max(1, len(values))
	}
	if parts > maxImpersonated {
		return invalid(preview, field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("%d groups and values of extra: at most %d are taken together", parts, maxImpersonated))})
	}
	return c.impersonate(ctx, as, func(part *field.Path) string {
		return fmt.Sprintf("needed for %s; leave userInfo out to be judged as yourself", part)
	}, path)
}

// impersonate demands that the caller may impersonate a user: the rights that
// WithImpersonation of k8s.io/apiserver/pkg/endpoints/filters/impersonation
// demands for the same user in headers. That is one for the user or service
// account and one for the uid, for each group and for each value of extra. As
// there, a group needs its right even when the user has it by nature, such as
// system:authenticated. Other than there no group is added, because a preview
// judges the user that it is given, and a user without a name is somebody too.
//
// Callers need no right to be themselves. What is missing is said with why,
// which is given the part of the user at path that needs the right.
func (c caller) impersonate(ctx context.Context, as *authenticationv1.UserInfo, why func(*field.Path) string, path *field.Path) error {
	if c.is(as) {
		return nil
	}
	for _, right := range impersonations(as, path) {
		right.asked.Verb = "impersonate"
		if err := c.Need(ctx, right.asked, why(right.part)); err != nil {
			return err
		}
	}
	return nil
}

// impersonation is a right that it takes to be a user, and the part of the user
// that needs it.
type impersonation struct {
	asked authorizer.AttributesRecord
	part  *field.Path
}

// impersonations returns the rights in the order in which they are asked for.
func impersonations(as *authenticationv1.UserInfo, path *field.Path) []impersonation {
	name := authorizer.AttributesRecord{Resource: "users", Name: as.Username}
	if namespace, account, err := serviceaccount.SplitUsername(as.Username); err == nil {
		name = authorizer.AttributesRecord{Resource: "serviceaccounts", Namespace: namespace, Name: account}
	}
	rights := []impersonation{{name, path.Child("username")}}
	for i, group := range as.Groups {
		rights = append(rights, impersonation{authorizer.AttributesRecord{Resource: "groups", Name: group}, path.Child("groups").Index(i)})
	}
	for _, key := range slices.Sorted(maps.Keys(as.Extra)) {
		values := as.Extra[key]
		if len(values) == 0 {
			values = []string{""} // policies can see the key alone
		}
		for _, value := range values {
			asked := authorizer.AttributesRecord{Resource: "userextras", Subresource: key, Name: value}
			rights = append(rights, impersonation{ofAuthentication(asked), path.Child("extra").Key(key)})
		}
	}
	if as.UID != "" {
		asked := authorizer.AttributesRecord{Resource: "uids", Name: as.UID}
		rights = append(rights, impersonation{ofAuthentication(asked), path.Child("uid")})
	}
	return rights
}

func ofAuthentication(asked authorizer.AttributesRecord) authorizer.AttributesRecord {
	asked.APIGroup, asked.APIVersion = authenticationv1.SchemeGroupVersion.Group, authenticationv1.SchemeGroupVersion.Version
	return asked
}

// is says whether the caller is that user, in all parts.
func (c caller) is(other *authenticationv1.UserInfo) bool {
	return c.User != nil &&
		c.User.GetName() == other.Username &&
		c.User.GetUID() == other.UID &&
		sets.New(c.User.GetGroups()...).Equal(sets.New(other.Groups...)) &&
		sameExtra(c.User, other.Extra)
}

func sameExtra(who user.Info, extra map[string]authenticationv1.ExtraValue) bool {
	return maps.EqualFunc(who.GetExtra(), extra, func(a []string, b authenticationv1.ExtraValue) bool {
		return slices.Equal(a, b)
	})
}
