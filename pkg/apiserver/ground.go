// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/etcd"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/follow"
)

// DefaultEtcdPrefix is where in etcd a server keeps its objects.
const DefaultEtcdPrefix = "/portcullis.dev"

const (
	serverID = "portcullis-apiserver"

	// http2MaxStreams is what k8s.io/apiserver/pkg/server/options/recommended.go sets.
	http2MaxStreams = 1000
	// watchGracePeriod bounds how long a shutdown waits for watches to end.
	watchGracePeriod = 2 * time.Second
)

// secure sets secure serving and the client that the server has of itself.
func secure(generic *genericapiserver.Config, listener net.Listener, cert dynamiccertificates.CertKeyContentProvider) error {
	serving := options.NewSecureServingOptions()
	serving.Listener = listener
	serving.ServerCert.GeneratedCert = cert
	serving.HTTP2MaxStreamsPerConnection = http2MaxStreams
	if err := serving.WithLoopback().ApplyToConfig(generic); err != nil {
		return fmt.Errorf("set up serving on %s: %w", listener.Addr(), err)
	}
	return nil
}

// storeIn keeps the stored kinds in etcd. No check of etcd is added to /livez and
// /readyz: a server that has read the policies judges without it. Collected says that
// the garbage collector of a cluster runs.
func storeIn(config *Config, transport storagebackend.TransportConfig, prefix string, collected bool) {
	prefix = cmp.Or(prefix, DefaultEtcdPrefix)
	backend := storagebackend.NewDefaultConfig(prefix, config.codecs.LegacyCodec(v1alpha1.SchemeGroupVersion))
	backend.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	backend.Transport = transport
	storage := etcd.NewStorage(*backend, config.Generic.StorageObjectCountTracker)
	storage.Collected = collected
	config.Generic.RESTOptionsGetter = storage
	config.Generic.AddHealthzChecks(healthz.NamedCheck("etcd", func(*http.Request) error { return storage.Reachable() }))
	config.Snapshot = follow.NewSnapshot(storage, clock.RealClock{})
}
