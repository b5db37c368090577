// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

func validating() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
}

func mutating() schema.GroupVersionResource {
	return validating().GroupVersion().WithResource("mutatingwebhookconfigurations")
}

// cluster is a fake that refuses patches of what has changed, as the real one does.
type cluster struct {
	*dynamicfake.FakeDynamicClient
	patches atomic.Int64
	// watches is how many have begun: unlike the real one, the fake forgets what happens
	// between a list and its watch.
	watches atomic.Int64
	// refuse is the answer to a patch, unless it is nil.
	refuse atomic.Pointer[error]
}

func newCluster(objects ...runtime.Object) *cluster {
	c := &cluster{FakeDynamicClient: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		validating(): "ValidatingWebhookConfigurationList", mutating(): "MutatingWebhookConfigurationList",
	}, objects...)}
	c.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		watching, err := c.Tracker().Watch(action.GetResource(), action.GetNamespace())
		c.watches.Add(1)
		return true, watching, err
	})
	var writing sync.Mutex
	c.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		writing.Lock()
		defer writing.Unlock()
		if refusal := c.refuse.Load(); refusal != nil {
			return true, nil, *refusal
		}
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			return true, nil, errors.New("no patch")
		}
		stored, err := c.Tracker().Get(patch.GetResource(), "", patch.GetName())
		if err != nil {
			return true, nil, err
		}
		before := stored.(*unstructured.Unstructured).GetResourceVersion()
		if !strings.Contains(string(patch.GetPatch()), `{"op":"add","path":"/metadata/resourceVersion","value":"`+before+`"}`) {
			return true, nil, apierrors.NewConflict(patch.GetResource().GroupResource(), patch.GetName(), errors.New("it has changed"))
		}
		_, object, err := clienttesting.ObjectReaction(c.Tracker())(action)
		if err != nil {
			return true, nil, err
		}
		changed := object.(*unstructured.Unstructured).DeepCopy()
		revision, err := strconv.Atoi(before)
		if err != nil {
			return true, nil, err
		}
		changed.SetResourceVersion(strconv.Itoa(revision + 1))
		c.patches.Add(1)
		return true, changed, c.Tracker().Update(patch.GetResource(), changed, "")
	})
	return c
}

// Resource returns a client that says of itself what the fake says of all.
func (c *cluster) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return listing{c.FakeDynamicClient.Resource(gvr)}
}

// listing is one that cannot begin a watch with what there is.
type listing struct {
	dynamic.NamespaceableResourceInterface
}

func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// write stores object in place of what is there.
func (c *cluster) write(t *testing.T, gvr schema.GroupVersionResource, object *unstructured.Unstructured) {
	t.Helper()
	stored, err := c.Resource(gvr).Get(t.Context(), object.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.Atoi(stored.GetResourceVersion())
	if err != nil {
		t.Fatal(err)
	}
	object.SetResourceVersion(strconv.Itoa(revision + 1))
	if _, err := c.Resource(gvr).Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) get(t *testing.T, gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := c.Resource(gvr).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}
