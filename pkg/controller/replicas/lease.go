// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// leasePrefix and the identity of a replica make the name of its Lease.
	leasePrefix = "portcullis-replica-"
	// leaseSelector selects the Leases of replicas.
	leaseSelector = leaseLabel + "=" + leaseOfReplica

	leaseLabel     = "policy.portcullis.dev/lease"
	leaseOfReplica = "replica"
	leaseOfLeader  = "leader"

	// enforcedAnnotation holds, as JSON, what is in force on a replica: by kind, the
	// resource version up to which all writes are.
	enforcedAnnotation = "policy.portcullis.dev/enforced"

	// leaseDuration is how long others wait for a replica that is not heard of.
	leaseDuration = 15 * time.Second
	// maxLeaseDuration bounds what a Lease may say of that.
	maxLeaseDuration = time.Minute
)

// labels are those of a Lease.
func labels(of string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "portcullis",
		"app.kubernetes.io/component":  "apiserver",
		"app.kubernetes.io/managed-by": "portcullis",
		leaseLabel:                     of,
	}
}

// renewed returns the Lease of a replica, made from the last one if there is one.
func renewed(last *coordinationv1.Lease, name, holder string, enforced map[string]string, now time.Time) (*coordinationv1.Lease, error) {
	text, err := json.Marshal(enforced)
	if err != nil {
		return nil, fmt.Errorf("what is in force: %w", err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if last != nil {
		lease = last.DeepCopy()
	}
	if lease.Labels == nil {
		lease.Labels = map[string]string{}
	}
	maps.Copy(lease.Labels, labels(leaseOfReplica))
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[enforcedAnnotation] = string(text)
	if holderOf(lease) != holder {
		lease.Spec.HolderIdentity = &holder
		lease.Spec.AcquireTime = &metav1.MicroTime{Time: now}
	}
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration / time.Second))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	return lease, nil
}

// holderOf returns the process that has written a Lease.
func holderOf(lease *coordinationv1.Lease) string {
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// enforcedIn returns what is in force on a replica. Of what cannot be read, nothing is.
func enforcedIn(lease *coordinationv1.Lease) map[string]string {
	var enforced map[string]string
	if err := json.Unmarshal([]byte(lease.Annotations[enforcedAnnotation]), &enforced); err != nil {
		return nil
	}
	return enforced
}

// durationOf returns how long a replica is waited for that is not heard of.
func durationOf(lease *coordinationv1.Lease) time.Duration {
	seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
	if seconds <= 0 {
		return leaseDuration
	}
	return min(time.Duration(seconds)*time.Second, maxLeaseDuration)
}
