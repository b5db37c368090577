// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/roles"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// roleNames are the roles and cluster roles of the user of a request.
type roleNames struct{ roles, clusterRoles []string }

func (r *roleNames) any() bool { return len(r.roles)+len(r.clusterRoles) > 0 }

// addTo adds the names to the variable request: as in Kyverno, none leave no field.
func (r *roleNames) addTo(value map[string]any) {
	if len(r.roles) > 0 {
		value["roles"] = list(r.roles)
	}
	if len(r.clusterRoles) > 0 {
		value["clusterRoles"] = list(r.clusterRoles)
	}
}

// rolesValue returns the roles of the user, and none when nobody asks for them.
func (v *Variables) rolesValue(ctx context.Context) (*roleNames, error) {
	if v.roles != nil {
		return v.roles, nil
	}
	found := &roleNames{}
	if !v.noRoles {
		for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
			if err := v.reads(ctx, verdict.ParamRef{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}); err != nil {
				return nil, err
			}
		}
		var err error
		found.roles, found.clusterRoles, err = roles.OfRequest(ctx, v.in.View, v.in.Request)
		if err != nil {
			return nil, fmt.Errorf("request.roles and request.clusterRoles: %w", err)
		}
	}
	v.roles = found
	return found, nil
}

// AsksRoles says whether an expression in one of the values, which are decoded JSON, may
// ask for request.roles or request.clusterRoles: whether the names are in it.
func AsksRoles(values ...any) bool {
	return slices.ContainsFunc(values, func(value any) bool { return mentionsRoles(value, 0) })
}

func mentionsRoles(value any, depth int) bool {
	if depth > maxValueDepth {
		return true
	}
	switch value := value.(type) {
	case string:
		return strings.Contains(value, "oles")
	case []any:
		return slices.ContainsFunc(value, func(item any) bool { return mentionsRoles(item, depth+1) })
	case map[string]any:
		for key, field := range value {
			if strings.Contains(key, "oles") || mentionsRoles(field, depth+1) {
				return true
			}
		}
	}
	return false
}
