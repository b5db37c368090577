// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	namespace  = "portcullis-system"
	secretName = "portcullis-serving"
)

// cluster is a fake that refuses to overwrite what has not been read, as the real
// one does.
type cluster struct {
	*fake.Clientset
	mu       sync.Mutex
	revision int
	writes   int
	// before is called with each write, before it is done.
	before func(verb string) error
}

func newCluster(objects ...runtime.Object) *cluster {
	c := &cluster{Clientset: fake.NewClientset(objects...)}
	c.PrependReactor("create", "secrets", c.write)
	c.PrependReactor("update", "secrets", c.write)
	return c
}

func (c *cluster) write(action clienttesting.Action) (bool, runtime.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before != nil {
		if err := c.before(action.GetVerb()); err != nil {
			return true, nil, err
		}
	}
	create, ok := action.(clienttesting.CreateAction)
	if !ok {
		return false, nil, nil
	}
	secret, ok := create.GetObject().(*corev1.Secret)
	if !ok {
		return false, nil, nil
	}
	gvr := action.GetResource()
	c.revision++
	if action.GetVerb() == "create" {
		secret.ResourceVersion = strconv.Itoa(c.revision)
		secret.Namespace = action.GetNamespace()
		if err := c.Tracker().Create(gvr, secret, action.GetNamespace()); err != nil {
			return true, nil, err
		}
		c.writes++
		return true, secret, nil
	}
	stored, err := c.Tracker().Get(gvr, action.GetNamespace(), secret.Name)
	if err != nil {
		return true, nil, err
	}
	if current, ok := stored.(*corev1.Secret); ok && current.ResourceVersion != secret.ResourceVersion {
		return true, nil, apierrors.NewConflict(gvr.GroupResource(), secret.Name, nil)
	}
	secret.ResourceVersion = strconv.Itoa(c.revision)
	if err := c.Tracker().Update(gvr, secret, action.GetNamespace()); err != nil {
		return true, nil, err
	}
	c.writes++
	return true, secret, nil
}

func (c *cluster) written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// start runs f, and ends it and waits for it with the test.
func start(t *testing.T, f func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
