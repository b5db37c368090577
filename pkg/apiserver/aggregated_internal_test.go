// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"testing"
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
