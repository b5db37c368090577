// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// callTimeout bounds one look at the cluster, whatever it takes.
	callTimeout = 10 * time.Second
	// attempts bounds how often a look is repeated at once because another replica
	// was faster. The next look is not far.
	attempts = 5
	// ensureTimeout bounds how long the start of a server waits for a Secret.
	ensureTimeout = 30 * time.Second
	// firstRetry and lastRetry bound the rest between two attempts at the start.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// secret keeps one Secret as its plan says, together with all others who do.
type secret struct {
	client          corev1client.SecretInterface
	namespace, name string
	plan            plan
	clock           clock.Clock
}

// foreignError says that somebody else's Secret has the name.
type foreignError struct{ namespace, name string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("Secret %s/%s has not been made by this server, as it holds no %s%s: it is left as it is; "+
		"let the server use another name, or delete the Secret, or start the server with certificate files of its own",
		e.namespace, e.name, signer, certSuffix)
}

// ensure keeps trying until the Secret is as it should be. It returns an error that
// says what to do when that cannot be or takes too long.
func (s *secret) ensure(ctx context.Context, everywhere func(*x509.Certificate) bool) (*contents, error) {
	ctx, cancel := context.WithTimeout(ctx, ensureTimeout)
	defer cancel()
	var last error
	for rest := firstRetry; ; rest = min(2*rest, lastRetry) {
		held, _, err := s.sync(ctx, everywhere)
		if err == nil {
			return held, nil
		}
		var foreign *foreignError
		if errors.As(err, &foreign) {
			return nil, err
		}
		if last == nil {
			klog.FromContext(ctx).Info("Waiting for certificates", "secret", klog.KRef(s.namespace, s.name), "err", err)
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, last
		case <-s.clock.After(rest):
		}
	}
}

// sync looks once, and writes if there is a reason to.
func (s *secret) sync(ctx context.Context, everywhere func(*x509.Certificate) bool) (held *contents, wrote bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for range attempts {
		if held, wrote, err = s.try(ctx, everywhere); !outrun(err) {
			break
		}
	}
	return held, wrote, err
}

// outrun says that the Secret has changed since it was read.
func outrun(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

func (s *secret) try(ctx context.Context, everywhere func(*x509.Certificate) bool) (held *contents, wrote bool, err error) {
	stored, err := s.client.Get(ctx, s.name, metav1.GetOptions{})
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return nil, false, s.explain("get", err)
	}
	if absent {
		stored = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"app.kubernetes.io/managed-by": fieldManager}},
			Type:       corev1.SecretTypeOpaque,
		}
	}
	// One without any data waits to be filled.
	if len(stored.Data) > 0 && len(stored.Data[signer+certSuffix]) == 0 && len(stored.Data[signer+keySuffix]) == 0 {
		return nil, false, &foreignError{s.namespace, s.name}
	}
	held, reasons, err := s.plan.renewed(stored.Data, s.clock.Now(), everywhere)
	if err != nil {
		return nil, false, fmt.Errorf("certificates of Secret %s/%s: %w", s.namespace, s.name, err)
	}
	if len(reasons) == 0 {
		return held, false, nil
	}
	stored.Data = held.data
	if absent {
		_, err = s.client.Create(ctx, stored, metav1.CreateOptions{FieldManager: fieldManager})
		err = s.explain("create", err)
	} else {
		// Its resourceVersion is that of what was read.
		_, err = s.client.Update(ctx, stored, metav1.UpdateOptions{FieldManager: fieldManager})
		err = s.explain("update", err)
	}
	if err != nil {
		return nil, false, err
	}
	klog.FromContext(ctx).Info("Made certificates anew", "secret", klog.KRef(s.namespace, s.name), "reasons", reasons)
	return held, true, nil
}

// explain names the Secret, and the rule that is missing when the cluster refuses.
func (s *secret) explain(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && verb == "create":
		err = fmt.Errorf("%w: apply an empty Secret of that name, or give the server's service account in a Role of namespace %s "+
			"the rule {apiGroups: [\"\"], resources: [secrets], verbs: [create]}", err, s.namespace)
	case apierrors.IsForbidden(err):
		err = fmt.Errorf("%w: give the server's service account in a Role of namespace %s the rule "+
			"{apiGroups: [\"\"], resources: [secrets], resourceNames: [%s], verbs: [get, list, watch, update]}", err, s.namespace, s.name)
	}
	return fmt.Errorf("%s Secret %s/%s: %w", verb, s.namespace, s.name, err)
}
