// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/bootstrap"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/drain"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/follow"
	"github.com/portcullis-dev/portcullis/pkg/controller/replicas"
	"github.com/portcullis-dev/portcullis/pkg/generated/openapi"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
)

// MaxRequestBodyBytes bounds every request body. It leaves room for a review or
// a preview of large objects with many candidates; stored objects are held to
// far less by validation.
const MaxRequestBodyBytes = 16 << 20

// Config says what a server is made of. Make one with NewConfig or
// NewStandaloneConfig, change it, then call Complete.
type Config struct {
	// Generic is the configuration of the generic API server.
	Generic *genericapiserver.Config
	// Extra is what the engine adds.
	Extra ExtraConfig
	// Snapshot says how old the policies in force are. It is nil when the storage
	// is set by others.
	Snapshot *follow.Snapshot
	// Replica is nil for a server that is alone. Set it before AddEngine.
	Replica *Replica

	scheme *runtime.Scheme
	codecs serializer.CodecFactory
	// informers are those of the cluster that the generic server needs; nil without one.
	informers informers.SharedInformerFactory
	bootstrap *bootstrap.Directory // nil without one
	member    *replicas.Member     // nil for a server that is alone
	drained   *drain.Listener      // nil for a server that is alone
}

// ExtraConfig is what a server offers beside the stored kinds.
type ExtraConfig struct {
	// Virtual holds the resources of the API group that are answered and stored
	// nowhere, by resource name.
	Virtual map[string]rest.Storage
	// Warnings tell writers of the stored kinds, by resource name, what is not wrong
	// enough to refuse; see stored.Kind.
	Warnings map[string]func(ctx context.Context, obj runtime.Object) []string
	// Forecast tells writers of the stored kinds, on dry runs, what existing objects
	// would come to; nil tells nothing.
	Forecast *admissionpreview.Forecast
	// Compile compiles an object of a kind as the engine does; see policy.Dialect. Without
	// it no mutate rules can be stored.
	Compile func(ctx context.Context, kind string, obj runtime.Object) (*policy.Unit, field.ErrorList)
	// Mapper maps the kinds of params to resources, as the cluster has them at the
	// moment: to let a param be read takes the right to its resource. Without one no
	// kind is known, and it takes the right to all resources.
	Mapper func() meta.RESTMapper
	// Handlers answer paths outside the API group, behind the authentication,
	// authorization and limits of the server, in place of what the generic server
	// has there. A path that ends in a slash stands for everything under it.
	Handlers map[string]http.Handler
	// Posts answer what is POSTed to paths of the API group, by path, in place of the
	// resources there, and behind the same filters.
	Posts map[string]http.Handler
	// Ready must pass before /readyz does.
	Ready []healthz.HealthChecker
	// Hooks run, by name, once the server listens. /readyz waits for them.
	Hooks map[string]genericapiserver.PostStartHookFunc
}

// NewConfig returns a Config in which serving, storage, authentication and
// authorization are still to be set.
func NewConfig() (*Config, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	codecs := newCodecs(scheme)
	generic := genericapiserver.NewConfig(codecs)
	generic.EffectiveVersion = newEffectiveVersion()
	generic.FeatureGate = utilfeature.DefaultFeatureGate
	generic.MaxRequestBodyBytes = MaxRequestBodyBytes

	namer := openapinamer.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "Portcullis"
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "Portcullis"
	documentUnauthorized(generic)

	return &Config{Generic: generic, scheme: scheme, codecs: codecs}, nil
}

// documentUnauthorized adds to every operation the answer to callers that are not
// known, as the reference of the Kubernetes API has it.
func documentUnauthorized(generic *genericapiserver.Config) {
	const description = "Unauthorized"
	generic.OpenAPIConfig.CommonResponses = map[int]spec.Response{
		http.StatusUnauthorized: {ResponseProps: spec.ResponseProps{Description: description}},
	}
	generic.OpenAPIV3Config.CommonResponses = map[int]*spec3.Response{
		http.StatusUnauthorized: {ResponseProps: spec3.ResponseProps{Description: description}},
	}
}

type completedConfig struct {
	generic genericapiserver.CompletedConfig
	member  *replicas.Member
	drained *drain.Listener
	extra   ExtraConfig
	scheme  *runtime.Scheme
	codecs  serializer.CodecFactory
}

// CompletedConfig can only be made by Complete.
type CompletedConfig struct {
	*completedConfig
}

// Complete fills in what can be derived. It changes the receiver.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{&completedConfig{
		generic: c.Generic.Complete(c.informers),
		member:  c.member,
		drained: c.drained,
		extra:   c.Extra,
		scheme:  c.scheme,
		codecs:  c.codecs,
	}}
}
