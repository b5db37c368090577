// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	flowcontrolrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/tools/cache"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// DefaultEtcdPrefix is where in etcd a server keeps its objects.
const DefaultEtcdPrefix = "/portcullis.dev"

// countPollPeriod is how often stored objects are counted, for a metric.
const countPollPeriod = time.Minute

// etcdStorage keeps the stored kinds in etcd, all through one connection. It
// stands where k8s.io/apiserver/pkg/storage/storagebackend/factory stands
// elsewhere: that waits for etcd when a server starts, and gives up; and it lets
// a lost connection rest for minutes and a request wait for one.
type etcdStorage struct {
	config  storagebackend.Config
	counter flowcontrolrequest.StorageObjectCountTracker

	mu         sync.Mutex
	connection *etcdConnection // nil while no kind is open
	kinds      map[schema.GroupResource]storedKind
}

// storedKind is what one kind is read from.
type storedKind struct {
	etcd  storage.Interface // etcd itself
	cache storage.Interface // etcd behind the watch cache
}

var _ generic.RESTOptionsGetter = &etcdStorage{}

// newEtcdStorage does not connect; the first kind does.
func newEtcdStorage(transport storagebackend.TransportConfig, prefix string, codec runtime.Codec, counter flowcontrolrequest.StorageObjectCountTracker) *etcdStorage {
	config := storagebackend.NewDefaultConfig(prefix, codec)
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	config.Transport = transport
	return &etcdStorage{config: *config, counter: counter, kinds: map[schema.GroupResource]storedKind{}}
}

// GetRESTOptions says how a resource is stored.
func (s *etcdStorage) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:           s.config.ForResource(resource),
		Decorator:               s.open,
		DeleteCollectionWorkers: 1,
		// No garbage collector runs beside a standalone server: with it enabled, a
		// foreground or orphaning delete would wait for one for ever.
		EnableGarbageCollection:   false,
		ResourcePrefix:            resource.Group + "/" + resource.Resource,
		CountMetricPollPeriod:     countPollPeriod,
		StorageObjectCountTracker: s.counter,
	}, nil
}

// open is a generic.StorageDecorator: it makes the storage of one kind, with a
// watch cache, as genericregistry.StorageWithCacher does.
func (s *etcdStorage) open(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
	newFunc, newListFunc func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	connection, err := s.connect()
	if err != nil {
		return nil, nil, err
	}
	versioner := storage.APIObjectVersioner{}
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	stored, err := etcd3.New(connection.client, connection.compactor, config.Codec, newFunc, newListFunc, config.Prefix, prefix, config.GroupResource,
		transformer, config.LeaseManagerConfig, etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
	if err != nil {
		s.disconnect()
		return nil, nil, fmt.Errorf("storage of %s: %w", config.GroupResource, err)
	}
	watchCache, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: stored, Versioner: versioner, GroupResource: config.GroupResource, EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix: prefix, KeyFunc: key, NewFunc: newFunc, NewListFunc: newListFunc, GetAttrsFunc: attrs,
		IndexerFuncs: triggers, Indexers: indexers, Codec: config.Codec,
	})
	if err != nil {
		stored.Close()
		s.disconnect()
		return nil, nil, fmt.Errorf("watch cache of %s: %w", config.GroupResource, err)
	}
	cached := cacher.NewCacheDelegator(watchCache, stored)
	s.kinds[config.GroupResource] = storedKind{etcd: stored, cache: cached}
	// Every store that shares the kind destroys it.
	destroy := sync.OnceFunc(func() {
		cached.Stop()
		watchCache.Stop()
		stored.Close()
		s.close(config.GroupResource)
	})
	return &servedStorage{Interface: cached, connection: connection}, destroy, nil
}

// connect returns the connection, which is made for the first kind.
func (s *etcdStorage) connect() (*etcdConnection, error) {
	if s.connection == nil {
		connection, err := newEtcdConnection(s.config.Transport, s.config.CompactionInterval)
		if err != nil {
			return nil, err
		}
		s.connection = connection
	}
	return s.connection, nil
}

func (s *etcdStorage) close(resource schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, resource)
	s.disconnect()
}

// disconnect ends the connection when no kind is left.
func (s *etcdStorage) disconnect() {
	if len(s.kinds) == 0 && s.connection != nil {
		s.connection.close()
		s.connection = nil
	}
}

// kind returns what an open kind is read from.
func (s *etcdStorage) kind(resource schema.GroupResource) (storedKind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, ok := s.kinds[resource]
	if !ok {
		return storedKind{}, fmt.Errorf("%s is not stored", resource)
	}
	return kind, nil
}

// current asks etcd for its revision.
func (s *etcdStorage) current(ctx context.Context) (historyMark, error) {
	s.mu.Lock()
	connection := s.connection
	s.mu.Unlock()
	if connection == nil {
		return historyMark{}, errors.New("nothing is stored")
	}
	response, err := connection.client.Kubernetes.Get(ctx, s.config.Prefix, kubernetes.GetOptions{})
	if err != nil {
		return historyMark{}, err
	}
	return historyMark{epoch: connection.history.mark().epoch, revision: response.Revision}, nil
}

// reachable fails when etcd did not answer when it was asked last.
func (s *etcdStorage) reachable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connection == nil {
		return nil
	}
	return s.connection.reachable()
}

func (s *etcdStorage) servers() string { return strings.Join(s.config.Transport.ServerList, ", ") }
