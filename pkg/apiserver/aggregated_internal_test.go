// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"testing"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// coldCluster can be asked after a while, and then not again.
type coldCluster struct {
	Cluster
	err error
}

func (c *coldCluster) Ready() error { return c.err }

// TestClusterWarmsUpOnce: what is missing later must not take all servers out at once.
func TestClusterWarmsUpOnce(t *testing.T) {
	cluster := &coldCluster{err: errors.New("cold")}
	warm := warmUp(cluster)
	if err := warm(); !errors.Is(err, cluster.err) {
		t.Errorf("got error %v of a cluster that is not known, want its own", err)
	}
	cluster.err = nil
	if err := warm(); err != nil {
		t.Errorf("got error %v of a cluster that is known", err)
	}
	cluster.err = errors.New("a new kind")
	if err := warm(); err != nil {
		t.Errorf("got error %v of a cluster that was known before", err)
	}
}

// authority is one of which only the content is asked.
type authority struct {
	dynamiccertificates.CAContentProvider
	content []byte
}

func (a *authority) CurrentCABundleContent() []byte { return a.content }

// TestReadyWithTheFrontProxy: a server that cannot tell the front proxy from strangers
// yet takes every caller for nobody.
func TestReadyWithTheFrontProxy(t *testing.T) {
	followed := &authority{}
	check := frontProxyKnown(followed)
	if check.Check(nil) == nil {
		t.Error("a server is ready that does not know its front proxy")
	}
	followed.content = []byte("authority")
	if err := check.Check(nil); err != nil {
		t.Error(err)
	}
}
