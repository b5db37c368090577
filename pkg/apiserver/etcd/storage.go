// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd stores objects in etcd as k8s.io/apiserver does, behind a watch
// cache, and stays of use while etcd is gone: a server starts without it, calls end
// soon and say why, and nothing is missed when etcd is back, an older copy included.
//
// It does not start an etcd, and does not know which kinds are stored.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
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
)

// countPollPeriod is how often stored objects are counted, for a metric.
const countPollPeriod = time.Minute

// Storage keeps all kinds in etcd through one connection. It stands where k8s.io/apiserver/pkg/storage/storagebackend/factory stands
// elsewhere: that waits for etcd when a server starts, and gives up; and it lets
// a lost connection rest for minutes and a request wait for one.
type Storage struct {
	// Collected says that a garbage collector looks after the stored objects: a
	// foreground or an orphaning delete waits for it, for ever where none runs. It is
	// set before the first kind is opened.
	Collected bool

	config  storagebackend.Config
	counter flowcontrolrequest.StorageObjectCountTracker

	mu         sync.Mutex
	connection *connection                   // nil while no kind is open
	kinds      map[schema.GroupResource]bool // those that are open
}

var _ generic.RESTOptionsGetter = &Storage{}

// NewStorage returns a storage that tells counter how many objects of each kind
// there are. It does not connect; the first kind does.
func NewStorage(config storagebackend.Config, counter flowcontrolrequest.StorageObjectCountTracker) *Storage {
	return &Storage{config: config, counter: counter, kinds: map[schema.GroupResource]bool{}}
}

// GetRESTOptions says how a resource is stored.
func (s *Storage) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:             s.config.ForResource(resource),
		Decorator:                 s.open,
		DeleteCollectionWorkers:   1,
		EnableGarbageCollection:   s.Collected,
		ResourcePrefix:            resourcePrefix(resource),
		CountMetricPollPeriod:     countPollPeriod,
		StorageObjectCountTracker: s.counter,
	}, nil
}

func resourcePrefix(resource schema.GroupResource) string {
	return resource.Group + "/" + resource.Resource
}

// open is a generic.StorageDecorator: it makes the storage of one kind, with a
// watch cache, as genericregistry.StorageWithCacher does.
func (s *Storage) open(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
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
	s.kinds[config.GroupResource] = true
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
func (s *Storage) connect() (*connection, error) {
	if s.connection == nil {
		connection, err := newConnection(s.config.Transport, s.config.CompactionInterval)
		if err != nil {
			return nil, err
		}
		s.connection = connection
	}
	return s.connection, nil
}

func (s *Storage) close(resource schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kinds, resource)
	s.disconnect()
}

// disconnect ends the connection when no kind is left.
func (s *Storage) disconnect() {
	if len(s.kinds) == 0 && s.connection != nil {
		s.connection.close()
		s.connection = nil
	}
}

// opened returns the connection while anything is stored.
func (s *Storage) opened() (*connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connection == nil {
		return nil, errors.New("nothing is stored")
	}
	return s.connection, nil
}

// Current asks etcd for its revision. doubts says how often there was reason to
// doubt, up to the answer, that this is the etcd that was asked before: as long as
// neither changes, what is stored has not changed.
func (s *Storage) Current(ctx context.Context) (doubts, revision int64, err error) {
	connection, err := s.opened()
	if err != nil {
		return 0, 0, err
	}
	response, err := connection.client.Kubernetes.Get(ctx, s.config.Prefix, kubernetes.GetOptions{})
	if err != nil {
		return 0, 0, err
	}
	return connection.history.doubted(), response.Revision, nil
}

// versionsPage is how many versions are asked for at once.
const versionsPage = 5000

// Versions returns the resource version of each object of a kind, as etcd has them
// at a revision that is current now, by the rest of its key behind the prefix of
// the kind. It decodes nothing.
func (s *Storage) Versions(ctx context.Context, resource schema.GroupResource) (versions map[string]int64, revision int64, err error) {
	connection, err := s.opened()
	if err != nil {
		return nil, 0, err
	}
	root := path.Join("/", s.config.Prefix, resourcePrefix(resource)) + "/"
	versions = map[string]int64{}
	next, more := root, true
	for more {
		var page *clientv3.GetResponse
		if page, err = connection.keys(ctx, next, clientv3.GetPrefixRangeEnd(root), revision); err != nil {
			return nil, 0, err
		}
		for _, kv := range page.Kvs {
			versions[strings.TrimPrefix(string(kv.Key), root)] = kv.ModRevision
			next = string(kv.Key) + "\x00"
		}
		if revision == 0 {
			revision = page.Header.Revision
		}
		more = page.More && len(page.Kvs) > 0
	}
	return versions, revision, nil
}

// ReadAgain ends all watches of etcd as if it did not know their revisions any
// more: who watches reads everything again.
func (s *Storage) ReadAgain() {
	if connection, err := s.opened(); err == nil {
		connection.history.end()
	}
}

// Reachable fails when etcd did not answer when it was asked last.
func (s *Storage) Reachable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connection == nil {
		return nil
	}
	return s.connection.reachable()
}

// Servers returns the addresses of the etcd servers, to show them.
func (s *Storage) Servers() string { return strings.Join(s.config.Transport.ServerList, ", ") }
