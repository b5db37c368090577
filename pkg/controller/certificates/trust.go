// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

// trust has callers trust the authorities of the server: it writes caBundle where
// an object of the cluster names the server's Service, and nothing else.
type trust struct {
	namespace, service string
	targets            []*target
	clock              clock.PassiveClock
}

// target is one object, which may be absent.
type target struct {
	client   dynamic.ResourceInterface
	resource schema.GroupResource
	name     string
	slots    func(t *trust, object map[string]any) ([]slot, error)

	// written is what each slot of the object with uid was last known to hold.
	uid     types.UID
	written map[string][]byte
	alarms  alarms
}

// found is a target as it was read.
type found struct {
	*target
	object *unstructured.Unstructured
	slots  []slot
}

func newTrust(o ServingOptions) *trust {
	t := &trust{namespace: o.Namespace, service: o.Service, clock: o.Clock}
	if o.Objects == nil {
		return t
	}
	for _, named := range []struct {
		name     string
		resource schema.GroupVersionResource
		slots    func(t *trust, object map[string]any) ([]slot, error)
	}{
		{o.APIService, schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}, apiServiceSlots},
		{o.ValidatingWebhooks, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}, webhookSlots},
		{o.MutatingWebhooks, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}, webhookSlots},
	} {
		if named.name != "" {
			t.targets = append(t.targets, &target{
				client: o.Objects.Resource(named.resource), resource: named.resource.GroupResource(), name: named.name,
				slots: named.slots, alarms: alarms{},
			})
		}
	}
	return t
}

// read returns the targets that there are. With an error the list is not complete.
func (t *trust) read(ctx context.Context) (present []found, err error) {
	var failures []error
	for _, target := range t.targets {
		object, err := target.read(ctx)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			failures = append(failures, target.explain("get", err))
			continue
		}
		slots, err := target.slots(t, object.Object)
		if err != nil {
			failures = append(failures, target.explain("read", err))
			continue
		}
		present = append(present, found{target: target, object: object, slots: slots})
	}
	return present, errors.Join(failures...)
}

func (t *target) read(ctx context.Context) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return t.client.Get(ctx, t.name, metav1.GetOptions{})
}

// trusting says whether every slot of present trusts an authority.
func trusting(present []found) func(*x509.Certificate) bool {
	return func(authority *x509.Certificate) bool {
		for _, f := range present {
			for _, s := range f.slots {
				if !slices.ContainsFunc(pki.Decode(s.bundle), authority.Equal) {
					return false
				}
			}
		}
		return true
	}
}

// write puts bundle into each slot of present that holds something else.
func (t *trust) write(ctx context.Context, present []found, bundle []byte) (wrote bool, err error) {
	var failures []error
	for _, f := range present {
		f.alarm(ctx, bundle, t.clock)
		changed, err := f.write(ctx, bundle)
		wrote = wrote || changed
		if err != nil {
			failures = append(failures, f.explain("patch", err))
		}
	}
	return wrote, errors.Join(failures...)
}

// write fails when the object has changed since it was read.
func (f found) write(ctx context.Context, bundle []byte) (wrote bool, err error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	operations := []operation{{Op: "add", Path: "/metadata/resourceVersion", Value: f.object.GetResourceVersion()}}
	written := map[string][]byte{}
	for _, s := range f.slots {
		written[s.id] = bundle
		if !bytes.Equal(s.bundle, bundle) {
			operations = append(operations, operation{Op: "add", Path: s.path, Value: base64.StdEncoding.EncodeToString(bundle)})
		}
	}
	if len(operations) > 1 {
		patch, err := json.Marshal(operations)
		if err != nil {
			return false, err
		}
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		_, err = f.client.Patch(ctx, f.name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		if apierrors.IsNotFound(err) {
			return false, nil // deleted meanwhile
		}
		if err != nil {
			return false, err
		}
		klog.FromContext(ctx).Info("Wrote the authorities to trust", "resource", f.resource.String(), "name", f.name)
		wrote = true
	}
	f.uid, f.written = f.object.GetUID(), written
	return wrote, nil
}

// alarm tells the log when a slot holds neither what it was known to hold nor what
// it should, which another replica may have written. Those of another object of the
// same name are new.
func (f found) alarm(ctx context.Context, bundle []byte, c clock.PassiveClock) {
	if f.uid != f.object.GetUID() {
		return
	}
	for _, s := range f.slots {
		before, known := f.written[s.id]
		if known && !bytes.Equal(s.bundle, before) && !bytes.Equal(s.bundle, bundle) && f.alarms.due(f.name, c.Now()) {
			klog.FromContext(ctx).Error(nil, "Somebody else has changed which authorities are trusted to be this server; writing them again",
				"resource", f.resource.String(), "name", f.name, "field", s.path, "managers", f.otherManagers())
		}
	}
}

// otherManagers are the field managers besides ours that have written a caBundle.
func (f found) otherManagers() []string {
	var names []string
	for _, entry := range f.object.GetManagedFields() {
		if entry.Manager != fieldManager && entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:caBundle"`) {
			names = append(names, entry.Manager)
		}
	}
	return names
}

// explain names the object, and the rule that is missing when the cluster refuses.
func (t *target) explain(verb string, err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: give the server's service account in a ClusterRole the rule "+
			"{apiGroups: [%s], resources: [%s], resourceNames: [%s], verbs: [get, list, watch, patch]}", err, t.resource.Group, t.resource.Resource, t.name)
	}
	return fmt.Errorf("%s %s %s: %w", verb, t.resource, t.name, err)
}
