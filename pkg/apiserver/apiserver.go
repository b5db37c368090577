// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/replicas"
	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

// Server serves the API group and what was added to it.
type Server struct {
	// Generic is the server that Server is built on.
	Generic *genericapiserver.GenericAPIServer

	member *replicas.Member // nil for a server that is alone
}

// New builds the server. It listens once Run is called.
func (c CompletedConfig) New() (*Server, error) {
	generic, err := c.generic.New("portcullis-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("build the generic API server: %w", err)
	}
	storage, err := c.storage()
	if err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(v1alpha1.GroupName, c.scheme, metav1.ParameterCodec, c.codecs)
	group.NegotiatedSerializer = withoutProtobuf{c.codecs}
	group.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = storage
	if err := generic.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("install %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	if err := c.addExtras(generic); err != nil {
		return nil, err
	}
	if c.drained != nil {
		c.drained.Serve(generic.Handler, generic.SecureServingInfo)
	}
	return &Server{Generic: generic, member: c.member}, nil
}

// Run serves until ctx ends, then lets the requests in flight finish.
func (s *Server) Run(ctx context.Context) error {
	err := s.Generic.PrepareRun().RunWithContext(ctx)
	if s.member != nil {
		leave(ctx, s.member)
	}
	return err
}

func (c *completedConfig) storage() (map[string]rest.Storage, error) {
	kinds := stored.Kinds()
	for i := range kinds {
		kinds[i].Warnings = c.extra.Warnings[kinds[i].Resource]
	}
	policies := c.authorizeWrites(kinds)
	c.forecastWrites(kinds, policies)
	storage, err := stored.NewStorage(c.scheme, c.generic.RESTOptionsGetter, kinds)
	if err != nil {
		return nil, err
	}
	if err := policies.serve(storage); err != nil {
		return nil, err
	}
	for resource, virtual := range c.extra.Virtual {
		if _, taken := storage[resource]; taken {
			return nil, fmt.Errorf("virtual resource %q has the name of a stored one", resource)
		}
		storage[resource] = virtual
	}
	return storage, nil
}

func (c *completedConfig) addExtras(server *genericapiserver.GenericAPIServer) error {
	for path, handler := range c.extra.Handlers {
		server.Handler.NonGoRestfulMux.Unregister(path) // the generic server's own, if it has one
		if strings.HasSuffix(path, "/") {
			server.Handler.NonGoRestfulMux.HandlePrefix(path, handler)
			continue
		}
		server.Handler.NonGoRestfulMux.Handle(path, handler)
	}
	if err := server.AddReadyzChecks(c.extra.Ready...); err != nil {
		return fmt.Errorf("add readiness checks: %w", err)
	}
	for name, hook := range c.extra.Hooks {
		if err := server.AddPostStartHook(name, hook); err != nil {
			return fmt.Errorf("add hook %q: %w", name, err)
		}
	}
	return nil
}
