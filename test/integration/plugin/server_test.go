// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsoptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
)

const (
	startTimeout = 30 * time.Second
	poll         = 20 * time.Millisecond
)

// foreign says what is special about an API server that is not ours: the one
// that serves CustomResourceDefinitions.
type foreign struct {
	Etcd      storagebackend.TransportConfig
	Admission admission.Interface
	Audit     audit.Backend
	Policy    audit.PolicyRuleEvaluator
}

// start starts a server that serves the kind of definition and returns the
// configuration of its administrator. It stops when the test ends.
func start(t testing.TB, config foreign, definition *apiextensionsv1.CustomResourceDefinition) *rest.Config {
	t.Helper()
	server, err := newServer(t.Context(), config)
	if err != nil {
		t.Fatalf("build the server: %v", err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with an error: %v", err)
		}
	})
	if err := define(ctx, server.LoopbackClientConfig, definition); err != nil {
		t.Fatalf("define %s: %v", definition.Name, err)
	}
	return server.LoopbackClientConfig
}

func newServer(ctx context.Context, config foreign) (*genericapiserver.GenericAPIServer, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	generic := genericapiserver.NewRecommendedConfig(apiextensionsserver.Codecs)
	generic.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString("1.37", "", "")
	generic.ExternalAddress = listener.Addr().String()
	generic.AdmissionControl = config.Admission
	generic.AuditBackend, generic.AuditPolicyRuleEvaluator = config.Audit, config.Policy
	generic.MergedResourceConfig = apiextensionsserver.DefaultAPIResourceConfigSource()
	namer := openapinamer.NewDefinitionNamer(apiextensionsserver.Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(apiextensionsopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(apiextensionsopenapi.GetOpenAPIDefinitions, namer)

	serving := options.NewSecureServingOptions()
	serving.Listener = listener
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, err
	}
	if err := serving.WithLoopback().ApplyToConfig(&generic.Config); err != nil {
		return nil, err
	}
	generic.Authentication.Authenticator = anonymous.NewAuthenticator(nil) // beside the token of the loopback client
	generic.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()

	backend := storagebackend.NewDefaultConfig("/foreign", apiextensionsserver.Codecs.LegacyCodec(apiextensionsv1.SchemeGroupVersion))
	backend.Transport = config.Etcd
	backend.Transport.TracerProvider = noopoteltrace.NewTracerProvider()
	etcd := options.NewEtcdOptions(backend)
	if err := etcd.ApplyTo(&generic.Config); err != nil {
		return nil, err
	}
	own := &apiextensionsserver.Config{
		GenericConfig: generic,
		ExtraConfig: apiextensionsserver.ExtraConfig{
			CRDRESTOptionsGetter: apiextensionsoptions.NewCRDRESTOptionsGetter(*etcd, generic.ResourceTransformers, generic.StorageObjectCountTracker),
			AuthResolverWrapper:  webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, generic.LoopbackClientConfig, noopoteltrace.NewTracerProvider()),
		},
	}
	server, err := own.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	return server.GenericAPIServer, nil
}

// define waits until the kind is served.
func define(ctx context.Context, config *rest.Config, definition *apiextensionsv1.CustomResourceDefinition) error {
	client, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	var last error
	err = wait.PollUntilContextTimeout(ctx, poll, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, last = definitions.Create(ctx, definition, metav1.CreateOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return wait.PollUntilContextTimeout(ctx, poll, startTimeout, true, func(ctx context.Context) (bool, error) {
		got, err := definitions.Get(ctx, definition.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		for _, condition := range got.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}
