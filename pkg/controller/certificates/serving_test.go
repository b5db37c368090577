// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

const serverName = "portcullis.portcullis-system.svc"

func newTestServing(c *cluster, objects *dynamicfake.FakeDynamicClient, clock clock.Clock) *Serving {
	return NewServing(ServingOptions{
		Secrets: c.CoreV1(), Objects: objects, Namespace: namespace, SecretName: secretName,
		Names: ServingNames("portcullis", namespace), Service: "portcullis", Clock: clock,
		APIService: apiServiceName, ValidatingWebhooks: webhooksName, MutatingWebhooks: webhooksName,
	})
}

// TestRotationUnderLoad has two replicas serve through the change of their
// authority and many of their certificates, while clients that trust what the
// APIService says connect to both.
func TestRotationUnderLoad(t *testing.T) {
	c, objects := newCluster(), newObjects(allTargets(t)...)
	if err := newTestServing(c, objects, clocktesting.NewFakeClock(testTime())).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin, end := testTime().Add(9*year-50*day), testTime().Add(10*year+70*day)
	// One clock for each replica, so that both can be waited for.
	clocks := []*clocktesting.FakeClock{clocktesting.NewFakeClock(begin), clocktesting.NewFakeClock(begin)}
	addresses := make([]string, len(clocks))
	for i, clock := range clocks {
		s := newTestServing(c, objects, clock)
		if err := s.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		addresses[i] = serve(t, s)
		start(t, s.Run)
	}
	trusts := func() []byte {
		return []byte(bundles(t, get(t, objects, apiServices, apiServiceName))[0])
	}
	eventually(t, "the APIService trusts the server", func() bool { return len(trusts()) > 0 })

	var done atomic.Bool
	var failures, certs sync.Map
	var load sync.WaitGroup
	counts := make([]atomic.Int64, len(clocks))
	for i, address := range addresses {
		load.Go(func() {
			for !done.Load() {
				cert, err := handshake(t.Context(), address, trusts(), clocks[i].Now)
				counts[i].Add(1)
				if err != nil {
					failures.Store(err.Error(), clocks[i].Now())
					continue
				}
				certs.Store(cert.SerialNumber.String(), true)
			}
		})
	}
	authorities := map[string]bool{}
	for clocks[0].Now().Before(end) {
		for i, clock := range clocks {
			// Two, of which one has begun after the last step.
			enough := counts[i].Load() + 2
			eventually(t, "clients have connected and the replica has looked", func() bool { return counts[i].Load() >= enough && clock.HasWaiters() })
		}
		for _, clock := range clocks {
			clock.Step(day)
		}
		for _, cert := range pki.Decode(trusts()) {
			authorities[cert.SerialNumber.String()] = true
		}
	}
	done.Store(true)
	load.Wait()

	shown := 0
	certs.Range(func(any, any) bool { shown++; return true })
	t.Logf("%d and %d handshakes with %d certificates of %d authorities", counts[0].Load(), counts[1].Load(), shown, len(authorities))
	failures.Range(func(err, at any) bool {
		t.Errorf("at %s: %s", at, err)
		return true
	})
	if shown < 7 || len(authorities) != 2 {
		t.Errorf("got %d certificates of %d authorities, want at least 7 of 2", shown, len(authorities))
	}
}

// serve answers at an address with what s shows, as the generic API server does.
func serve(t *testing.T, s *Serving) string {
	t.Helper()
	base := &tls.Config{MinVersion: tls.VersionTLS12}
	controller := dynamiccertificates.NewDynamicServingCertificateController(base, nil, s, nil, nil)
	s.AddListener(controller)
	if err := controller.RunOnce(); err != nil {
		t.Fatal(err)
	}
	start(t, func(ctx context.Context) { controller.Run(1, ctx.Done()) })
	config := base.Clone()
	config.GetConfigForClient = controller.GetConfigForClient
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 1)) // the handshake, and then the end
			}()
		}
	}()
	return listener.Addr().String()
}

func handshake(ctx context.Context, address string, bundle []byte, now func() time.Time) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := tls.Dialer{Config: &tls.Config{
		RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS12, Time: now,
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return nil, net.ErrClosed
	}
	return secure.ConnectionState().PeerCertificates[0], nil
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Microsecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("not within 30 s: %s", what)
	}
}

// TestChangesAreMended has others change what replicas keep.
func TestChangesAreMended(t *testing.T) {
	c, objects := newCluster(), newObjects(allTargets(t)...)
	clock := clocktesting.NewFakeClock(testTime())
	s := newTestServing(c, objects, clock)
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, s.Run)
	told := func() bool {
		bundle := []byte(bundles(t, get(t, objects, apiServices, apiServiceName))[0])
		secret, err := c.CoreV1().Secrets(namespace).Get(t.Context(), secretName, metav1.GetOptions{})
		if err != nil || !bytes.Equal(bundle, secret.Data[bundleKey]) {
			return false
		}
		cert, _ := s.CurrentCertKeyContent()
		return bytes.Equal(cert, secret.Data["tls.crt"]) && len(cert) > 0
	}
	eventually(t, "it is told whom to trust", told)
	first, _ := s.CurrentCertKeyContent()

	mend := func(what string) {
		t.Helper()
		eventually(t, what, func() bool {
			clock.Step(leastRest) // less than the next poll in all, unless a watch is missed
			return told()
		})
	}
	o := get(t, objects, apiServices, apiServiceName)
	unstructured.RemoveNestedField(o.Object, "spec", "caBundle")
	if _, err := objects.Resource(apiServices).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	mend("the bundle is written again")

	if err := c.CoreV1().Secrets(namespace).Delete(t.Context(), secretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mend("all is made anew")
	if second, _ := s.CurrentCertKeyContent(); bytes.Equal(first, second) {
		t.Error("the old certificate is still shown")
	}
}

// TestTrustComesBeforeUse has nobody told of a new authority.
func TestTrustComesBeforeUse(t *testing.T) {
	c, objects := newCluster(), newObjects(allTargets(t)...)
	clock := clocktesting.NewFakeClock(testTime())
	s := newTestServing(c, objects, clock)
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, _ := s.CurrentCertKeyContent()

	var refuse atomic.Bool
	objects.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if !refuse.Load() {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(apiServices.GroupResource(), apiServiceName, errors.New("no rule"))
	})
	refuse.Store(true)
	if err := c.CoreV1().Secrets(namespace).Delete(t.Context(), secretName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.look(t.Context()); err == nil {
			t.Fatal("the refusal is no error")
		}
		if now, _ := s.CurrentCertKeyContent(); !bytes.Equal(first, now) {
			t.Fatal("a certificate is shown that nobody can trust")
		}
	}
	clock.Step(leafLifetime)
	if _, err := s.look(t.Context()); err == nil {
		t.Fatal("the refusal is no error")
	}
	third, _ := s.CurrentCertKeyContent()
	if bytes.Equal(first, third) {
		t.Error("a certificate that has ended is still shown")
	}
	refuse.Store(false)
	if _, err := s.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	encoded, _, _ := unstructured.NestedString(get(t, objects, apiServices, apiServiceName).Object, "spec", "caBundle")
	bundle, _ := base64.StdEncoding.DecodeString(encoded)
	cert, _ := s.CurrentCertKeyContent()
	if issuer(pki.Decode(cert)[0], pki.Decode(bundle)) == nil {
		t.Error("the authority is not told after all")
	}
}

// TestFightIsSlow has somebody write another bundle each time that ours is there.
func TestFightIsSlow(t *testing.T) {
	objects := newObjects(allTargets(t)...)
	clock := clocktesting.NewFakeClock(testTime())
	s := newTestServing(newCluster(), objects, clock)
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, s.Run)
	writes := 0
	for end := testTime().Add(time.Hour); clock.Now().Before(end); clock.Step(time.Second) {
		eventually(t, "it has looked", clock.HasWaiters)
		o := get(t, objects, apiServices, apiServiceName)
		if bundle, _, _ := unstructured.NestedString(o.Object, "spec", "caBundle"); bundle != "Zm9yZWlnbg==" {
			writes++
			if err := unstructured.SetNestedField(o.Object, "Zm9yZWlnbg==", "spec", "caBundle"); err != nil {
				t.Fatal(err)
			}
			if _, err := objects.Resource(apiServices).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if writes < 20 || writes > 100 {
		t.Errorf("written %d times in an hour, want about once a minute", writes)
	}
}

// TestTheSecretIsReadByName pins what the documented RBAC rules must allow.
func TestTheSecretIsReadByName(t *testing.T) {
	c, objects := newCluster(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "another"}}), newObjects(allTargets(t)...)
	s := newTestServing(c, objects, clock.RealClock{})
	if err := s.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	start(t, s.Run)
	actions := func() []clienttesting.Action { return slices.Concat(c.Actions(), objects.Actions()) }
	eventually(t, "it follows all four objects", func() bool {
		watches := 0
		for _, action := range actions() {
			if action.GetVerb() == "watch" {
				watches++
			}
		}
		return watches == 4
	})
	for _, action := range actions() {
		var name string
		switch a := action.(type) {
		case clienttesting.CreateAction:
			continue // no rule can name what is not there yet
		case clienttesting.GetAction: // and a patch
			name = a.GetName()
		case clienttesting.ListAction:
			name, _ = a.GetListRestrictions().Fields.RequiresExactMatch("metadata.name")
		case clienttesting.WatchAction:
			name, _ = a.GetWatchRestrictions().Fields.RequiresExactMatch("metadata.name")
		}
		if !slices.Contains([]string{secretName, apiServiceName, webhooksName}, name) {
			t.Errorf("%s %s %q: no rule that names an object allows it", action.GetVerb(), action.GetResource().Resource, name)
		}
	}
}
