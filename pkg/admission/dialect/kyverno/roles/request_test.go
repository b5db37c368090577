// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package roles_test

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/roles"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// counting is a cluster that counts what it is asked.
type counting struct {
	*world
	asked int
}

func (c *counting) Objects(ctx context.Context, selection cluster.Selection) ([]*unstructured.Unstructured, error) {
	c.asked++
	return c.world.Objects(ctx, selection)
}

// TestOfRequest: a view is asked once for a request, whatever becomes of its object, and
// again after an error.
func TestOfRequest(t *testing.T) {
	req := request.New(request.Fields{User: &user.DefaultInfo{Name: "alice"}, Namespace: "shop"})
	stored := &counting{world: &world{bindings: []*unstructured.Unstructured{bind("shop", "Role", "role", "User=alice")}}}
	other := &counting{world: &world{broken: "RoleBinding"}}
	changed := req.WithObject(&unstructured.Unstructured{Object: map[string]any{}})
	for _, asking := range []*request.Request{req, changed, req} {
		got, clusterRoles, err := roles.OfRequest(t.Context(), stored, asking)
		if err != nil || !slices.Equal(got, []string{"shop:role"}) || len(clusterRoles) > 0 {
			t.Errorf("got %v, %v, error %v", got, clusterRoles, err)
		}
		if _, _, err := roles.OfRequest(t.Context(), other, asking); err == nil {
			t.Error("another view gives the answer of the first")
		}
	}
	if stored.asked != 2 || other.asked != 3 {
		t.Errorf("the views were asked %d and %d times, want 2 and 3", stored.asked, other.asked)
	}
	if _, _, err := roles.OfRequest(t.Context(), stored, request.New(req.Fields)); err != nil || stored.asked != 4 {
		t.Errorf("another request does not ask: %d, %v", stored.asked, err)
	}
}
