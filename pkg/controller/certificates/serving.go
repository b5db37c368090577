// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

// DefaultServingSecret is the name of the Secret of a serving certificate.
const DefaultServingSecret = "portcullis-serving" //nolint:gosec // it is the name of a Secret and no secret

const (
	// quickSettle is how old an authority is before it signs, if it has been written
	// into all targets: every kube-apiserver has seen it there by then.
	quickSettle = 24 * time.Hour
	// slowSettle is that of an authority which nobody can be seen to trust. Members of
	// etcd and their clients read theirs only when they start, so this is how much
	// time there is to restart them.
	slowSettle = overlap / 2

	servingLeaf = "tls"
)

// ServingOptions say who serves, and who is to trust it.
type ServingOptions struct {
	// Secrets and Objects reach the cluster. Without Objects, nobody is told whom
	// to trust.
	Secrets corev1client.SecretsGetter
	Objects dynamic.Interface
	// Namespace is that of the server, its Service and its Secret.
	Namespace  string
	SecretName string
	// Names are the DNS names and IP addresses under which the server is called.
	Names []string
	// Service is the server's. Only what names it is told whom to trust.
	Service string
	// APIService, ValidatingWebhooks and MutatingWebhooks are the names of the
	// objects that are told. Empty means none, and absent objects stay absent.
	APIService         string
	ValidatingWebhooks string
	MutatingWebhooks   string
	// Clock is clock.RealClock{}, but in tests.
	Clock clock.Clock
}

// ServingNames are the names of a Service, and that of the machine itself.
func ServingNames(service, namespace string) []string {
	name := service + "." + namespace + ".svc"
	return []string{name, name + ".cluster.local", "localhost"}
}

// Serving is the certificate that a server shows, for as long as it runs. It is
// safe for concurrent use.
type Serving struct {
	secret *secret
	trust  *trust
	loop   *loop

	// current is what is shown.
	current atomic.Pointer[contents]
	// told are the authorities that all targets were last known to trust. Only Ensure
	// and Run know it.
	told []*x509.Certificate

	mu        sync.Mutex
	listeners []dynamiccertificates.Listener
}

var _ dynamiccertificates.CertKeyContentProvider = (*Serving)(nil)

// NewServing returns a certificate that Ensure has to bring.
func NewServing(o ServingOptions) *Serving {
	trust, settle := newTrust(o), quickSettle
	if len(trust.targets) == 0 {
		settle = slowSettle
	}
	return &Serving{
		secret: &secret{
			client: o.Secrets.Secrets(o.Namespace), namespace: o.Namespace, name: o.SecretName, clock: o.Clock,
			plan: plan{
				authority: "portcullis-serving-ca",
				settle:    settle,
				leaves: []leaf{{name: servingLeaf, spec: pki.Spec{
					CommonName: "portcullis-apiserver", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
					Names: o.Names, Lifetime: leafLifetime,
				}}},
			},
		},
		trust: trust,
		loop:  newLoop("the server", o.Clock),
	}
}

// Ensure brings the certificate, making it if no replica has. It is called once,
// before the server listens. Run tells the cluster whom to trust.
func (s *Serving) Ensure(ctx context.Context) error {
	held, err := s.secret.ensure(ctx, func(*x509.Certificate) bool { return false })
	if err != nil {
		return err
	}
	s.told = []*x509.Certificate{issuer(held.leaves[servingLeaf].Cert, held.trusted)}
	s.use(held)
	return nil
}

// Run keeps the certificate, and the authorities that the cluster trusts, until
// ctx ends. It is called once, after Ensure.
func (s *Serving) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { s.secret.follow(ctx, s.loop.wake) })
	for _, target := range s.trust.targets {
		running.Go(func() { target.follow(ctx, s.loop.wake) })
	}
	s.loop.run(ctx, s.look)
	running.Wait()
}

// look reads the targets before the Secret: what they are given is never older
// than what they held.
func (s *Serving) look(ctx context.Context) (wrote bool, err error) {
	present, readErr := s.trust.read(ctx)
	everywhere := trusting(present)
	if readErr != nil {
		everywhere = func(*x509.Certificate) bool { return false }
	}
	held, renewed, err := s.secret.sync(ctx, everywhere)
	if err != nil {
		return false, errors.Join(err, readErr)
	}
	told, writeErr := s.trust.write(ctx, present, held.data[bundleKey])
	err = errors.Join(readErr, writeErr)
	if err == nil {
		s.told = held.trusted
	}
	if s.mayUse(held) {
		s.use(held)
	}
	return renewed || told, err
}

// mayUse says whether held may be shown: its authority is trusted, or what is shown
// now is of no use any more.
func (s *Serving) mayUse(held *contents) bool {
	return issuer(held.leaves[servingLeaf].Cert, s.told) != nil ||
		!s.secret.clock.Now().Before(s.current.Load().leaves[servingLeaf].Cert.NotAfter)
}

// use shows held from the next handshake on.
func (s *Serving) use(held *contents) {
	before := s.current.Swap(held)
	if before != nil && bytes.Equal(before.leaves[servingLeaf].CertPEM, held.leaves[servingLeaf].CertPEM) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, listener := range s.listeners {
		listener.Enqueue()
	}
}

// Name says where the certificate comes from.
func (s *Serving) Name() string {
	return "serving-cert::" + s.secret.namespace + "/" + s.secret.name
}

// CurrentCertKeyContent returns the certificate and its key as PEM, and nothing
// before Ensure.
func (s *Serving) CurrentCertKeyContent() (cert, key []byte) {
	shown := s.current.Load()
	if shown == nil {
		return nil, nil
	}
	pair := shown.leaves[servingLeaf]
	return pair.CertPEM, pair.KeyPEM
}

// AddListener has listener told of each new certificate.
func (s *Serving) AddListener(listener dynamiccertificates.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
}
