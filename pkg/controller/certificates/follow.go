// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/controller/internal/named"
)

// follow wakes whoever keeps the Secret when somebody has changed it. Nobody relies on
// that: what is not heard is seen at the next poll.
func (s *secret) follow(ctx context.Context, wake func()) {
	named.Follow(ctx, s.client, &corev1.Secret{}, s.name, func(runtime.Object) { wake() })
}

// follow wakes whoever writes the bundle when somebody has changed the target, as above.
func (t *target) follow(ctx context.Context, wake func()) {
	named.Follow(ctx, t.client, &unstructured.Unstructured{}, t.name, func(runtime.Object) { wake() })
}
