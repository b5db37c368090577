// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/controller/internal/named"
)

const (
	// fieldManager is that of all that the server writes into webhook configurations.
	fieldManager = "portcullis"
	// callTimeout bounds one call of kube-apiserver.
	callTimeout = 10 * time.Second
	// firstRetry and lastRetry bound the rest after a configuration could not be put back.
	firstRetry = time.Second
	lastRetry  = time.Minute
	// poll is how often there is a look at least: a clock can be set.
	poll = time.Minute
)

// target is one webhook configuration.
type target struct {
	client         dynamic.ResourceInterface
	resource, name string
	door           string // where a webhook must lead
	opens          []string
	clock          clock.Clock

	seen  atomic.Pointer[unstructured.Unstructured] // nil when there is none
	open  atomic.Pointer[Window]                    // nil when there is none
	wakes chan struct{}                             // holds one

	// owed is why the configuration is to be put back though it does not say so any
	// more. Only run knows it.
	owed string
}

func newTarget(objects dynamic.Interface, of Configuration, c clock.Clock) *target {
	gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: of.Resource}
	return &target{
		client: objects.Resource(gvr), resource: of.Resource, name: of.Name,
		door: of.Door, opens: of.Opens, clock: c, wakes: make(chan struct{}, 1),
	}
}

// follow tells of each change of the configuration, until ctx ends.
func (t *target) follow(ctx context.Context) {
	named.Follow(ctx, t.client, &unstructured.Unstructured{}, t.name, t.changed)
}

// changed takes what is no configuration of the name for none.
func (t *target) changed(object runtime.Object) {
	configuration, ok := object.(*unstructured.Unstructured)
	if !ok || configuration.GetName() != t.name {
		configuration = nil
	}
	t.seen.Store(configuration)
	select {
	case t.wakes <- struct{}{}:
	default: // it will look
	}
}

// run keeps open up to date, and puts the configuration back, until ctx ends.
func (t *target) run(ctx context.Context) {
	retry := firstRetry
	for {
		rest, err := t.look(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Break-glass cannot be ended; trying on")
			rest, retry = retry, min(2*retry, lastRetry)
		} else {
			retry = firstRetry
		}
		timer := t.clock.NewTimer(rest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		case <-t.wakes:
		}
		timer.Stop()
	}
}

// look returns when to look again.
func (t *target) look(ctx context.Context) (rest time.Duration, err error) {
	object := t.seen.Load()
	if object == nil || !leadsTo(object, t.door) {
		t.owed = ""
		t.publish(ctx, object, nil)
		return poll, nil
	}
	now := t.clock.Now()
	said := read(object, now)
	if before := t.open.Load(); before != nil {
		t.owed = "ended: the annotations were removed: " + before.Reason
	}
	if said == (state{}) && lax(object) {
		said.close = t.owed
	}
	t.publish(ctx, object, said.open)
	switch {
	case said.open != nil:
		return min(said.open.Until.Sub(now), poll), nil
	case said.close == "":
		t.owed = ""
		return poll, nil
	}
	return poll, t.restore(ctx, object, said.close)
}

// publish has requests judged or not, and the log told when that changes.
func (t *target) publish(ctx context.Context, object *unstructured.Unstructured, open *Window) {
	before := t.open.Swap(open)
	logger := klog.FromContext(ctx).WithValues("resource", t.resource, "name", t.name)
	switch {
	case open != nil && (before == nil || *before != *open):
		logger.Info("Break-glass: every request is admitted without being judged", "until", open.Until, "reason", open.Reason, "manager", writer(object).Manager)
	case open == nil && before != nil:
		logger.Info("Break-glass has ended: requests are judged", "until", before.Until, "reason", before.Reason)
	}
}

// restore puts the configuration back, unless it has changed since object was read:
// another replica may have been faster, or someone may need more time.
func (t *target) restore(ctx context.Context, object *unstructured.Unstructured, why string) error {
	last := stamp(t.clock.Now()) + " " + why
	patch, err := restoring(object, last)
	if err != nil {
		return fmt.Errorf("%s %s: %w", t.resource, t.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = t.client.Patch(ctx, t.name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // the change is on its way
	case apierrors.IsForbidden(err):
		return fmt.Errorf("patch %s %s: %w: give the server's service account in a ClusterRole the rule "+
			"{apiGroups: [admissionregistration.k8s.io], resources: [%s], resourceNames: [%s], verbs: [get, list, watch, patch]}", t.resource, t.name, err, t.resource, t.name)
	case err != nil:
		return fmt.Errorf("patch %s %s: %w", t.resource, t.name, err)
	}
	klog.FromContext(ctx).Info("Put the webhook configuration back after break-glass", "resource", t.resource, "name", t.name, "last", last)
	return nil
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// restoring is the JSON patch that puts object back. It fails on any other version of
// the object.
func restoring(object *unstructured.Unstructured, last string) ([]byte, error) {
	operations := []operation{{Op: "add", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}}
	annotations := object.GetAnnotations()
	if annotations == nil {
		operations = append(operations, operation{Op: "add", Path: "/metadata/annotations", Value: map[string]string{}})
	}
	for _, name := range []string{UntilAnnotation, ReasonAnnotation} {
		if _, ok := annotations[name]; ok {
			operations = append(operations, operation{Op: "remove", Path: annotationPath(name)})
		}
	}
	operations = append(operations, operation{Op: "add", Path: annotationPath(LastAnnotation), Value: last})
	for _, i := range laxWebhooks(object) {
		operations = append(operations, operation{Op: "add", Path: fmt.Sprintf("/webhooks/%d/failurePolicy", i), Value: "Fail"})
	}
	return json.Marshal(operations)
}

// leadsTo says whether a webhook of object asks at the path of a door.
func leadsTo(object *unstructured.Unstructured, door string) bool {
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks") // kube-apiserver keeps no other than a list of objects
	return slices.ContainsFunc(webhooks, func(item any) bool {
		webhook, ok := item.(map[string]any)
		if !ok {
			return false
		}
		path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if raw, _, _ := unstructured.NestedString(webhook, "clientConfig", "url"); raw != "" {
			if parsed, err := url.Parse(raw); err == nil {
				path = parsed.Path
			}
		}
		return path == door
	})
}

// lax says whether object lets requests through when no server answers.
func lax(object *unstructured.Unstructured) bool { return len(laxWebhooks(object)) > 0 }

// laxWebhooks are the places of those that do, in the list of webhooks.
func laxWebhooks(object *unstructured.Unstructured) (places []int) {
	webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks") // kube-apiserver keeps no other than a list of objects
	for i, item := range webhooks {
		if webhook, ok := item.(map[string]any); ok && webhook["failurePolicy"] != "Fail" {
			places = append(places, i)
		}
	}
	return places
}

// annotationPath is the JSON pointer to an annotation.
func annotationPath(name string) string {
	return "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
