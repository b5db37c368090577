// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/custom"
)

const (
	// firstWalked and maxWalked bound the objects of the pages of a walk: the first
	// page, when it is not known how large the objects are, and the others.
	firstWalked = 10
	maxWalked   = 50
	// walkedBytes is what a page should take. It does when its objects are no larger
	// than the largest of the page before.
	walkedBytes = 16 << 20
)

// Walk visits objects of kinds that are followed as they are held, and the others in the
// order in which the API server lists them.
func (v *view) Walk(ctx context.Context, wanted cluster.Selection, visit cluster.Visit) error {
	mapping, err := wanted.Mapping(v.mapper)
	if err != nil {
		return err
	}
	if wanted.Name != "" || wanted.Selector == nil || v.cluster.kinds.find(wanted.Kind) != nil {
		held, err := v.Objects(ctx, wanted)
		if err != nil {
			return err
		}
		return cluster.WalkHeld(held, visit)
	}
	return v.cluster.reader.walk(ctx, where{wanted.Kind, mapping.Resource}, selection{wanted.Namespace, wanted.Selector}, visit)
}

// walk reads a page when the one before has been visited. All pages show the state of
// the first one, unless the API server no longer has that: then the others show a newer
// one, from the object on at which the walk is.
func (r *reader) walk(ctx context.Context, at where, wanted selection, visit cluster.Visit) error {
	if _, selectable := wanted.selector.Requirements(); !selectable {
		return nil // the selector of nothing has no text
	}
	options := metav1.ListOptions{LabelSelector: wanted.selector.String(), Limit: firstWalked}
	renewed := false
	for {
		page, err := r.page(ctx, at.resource, wanted.namespace, options)
		if next := renewal(err); next != "" && options.Continue != "" && !renewed {
			options.Continue, renewed = next, true
			continue
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", at.kind.Kind, advise(err, at.resource))
		}
		renewed = false
		options.Continue = page.GetContinue()
		largest, more, err := visitPage(page, wanted.selector, visit)
		if err != nil || !more || options.Continue == "" {
			return err
		}
		options.Limit = min(2*options.Limit, maxWalked, max(1, int64(walkedBytes/max(1, largest))))
	}
}

// renewal returns the token with which a list goes on whose state is gone, as the
// message of NewResourceExpired with a token says (handleCompactedErrorForPaging in
// k8s.io/apiserver/pkg/storage/etcd3); it is empty for other errors.
func renewal(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// visitPage visits the selected objects of a page. What is kept of them keeps none of
// the others in memory. It returns the size of the largest.
func visitPage(page *unstructured.UnstructuredList, selector labels.Selector, visit cluster.Visit) (largest int, more bool, err error) {
	items := page.Items
	page.Items = nil
	selected := items[:0]
	for i := range items {
		if selector.Matches(labels.Set(items[i].GetLabels())) {
			selected = append(selected, items[i])
		}
	}
	clear(items[len(selected):])
	beyond, counted := page.GetRemainingItemCount(), true
	if beyond == nil {
		beyond, counted = new(int64), page.GetContinue() == ""
	}
	for i := range selected {
		object := trimmed(&unstructured.Unstructured{Object: selected[i].Object})
		selected[i].Object = nil
		size := custom.Size(object.Object)
		largest = max(largest, size)
		more, err := visit(cluster.Visited{Object: object, Bytes: size, Left: len(selected) - i - 1 + int(max(0, *beyond)), More: !counted})
		if err != nil || !more {
			return largest, false, err
		}
	}
	return largest, true, nil
}
