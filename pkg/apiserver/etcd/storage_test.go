// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// listed notes in a list how it was read.
type listed struct {
	storage.Interface
	name string
}

func (l listed) GetList(_ context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	list, ok := out.(*metav1.PartialObjectMetadataList)
	if !ok || !opts.Recursive {
		return fmt.Errorf("unexpected list of %s into %T", key, out)
	}
	list.Continue = fmt.Sprintf("%s of %s at %s%s", key, l.name, opts.ResourceVersionMatch, opts.ResourceVersion)
	return nil
}

func TestList(t *testing.T) {
	rules := schema.GroupResource{Group: "rules.dev", Resource: "rules"}
	s := NewStorage(storagebackend.Config{}, nil)
	s.kinds[rules] = storedKind{etcd: listed{name: "etcd"}, cache: listed{name: "cache"}}
	for revision, want := range map[int64]string{
		0: "/rules.dev/rules of etcd at ",
		7: "/rules.dev/rules of cache at NotOlderThan7",
	} {
		var list metav1.PartialObjectMetadataList
		if err := s.List(t.Context(), rules, revision, &list); err != nil || list.Continue != want {
			t.Errorf("at %d: got list %q and error %v, want %q", revision, list.Continue, err, want)
		}
	}
	if err := s.List(t.Context(), schema.GroupResource{Resource: "rules"}, 0, &metav1.PartialObjectMetadataList{}); err == nil {
		t.Error("listed what is not stored")
	}
}

// TestNothingIsStored: a storage without kinds has no connection.
func TestNothingIsStored(t *testing.T) {
	s := NewStorage(storagebackend.Config{}, nil)
	if _, revision, err := s.Current(t.Context()); err == nil {
		t.Errorf("got revision %d of nothing", revision)
	}
	if err := s.Reachable(); err != nil {
		t.Errorf("got %v before etcd was asked", err)
	}
}
