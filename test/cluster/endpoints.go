// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	discoveryv1apply "k8s.io/client-go/applyconfigurations/discovery/v1"
	"k8s.io/client-go/kubernetes"
)

// endpointsPeriod is how often the balancer is looked at: about as often as it looks
// at the replicas.
const endpointsPeriod = 100 * time.Millisecond

// publishEndpoints keeps the EndpointSlice of the Service, which says which replicas
// are ready, until ctx ends. In a cluster with nodes a controller does that.
// kube-apiserver looks at an API group again when the EndpointSlices of its Service
// change, and otherwise after up to half a minute.
func (c *Cluster) publishEndpoints(ctx context.Context, client kubernetes.Interface) {
	var published []string
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		ready := slices.Sorted(slices.Values(c.Balancer.Ready()))
		if slices.Equal(ready, published) {
			return
		}
		// What fails, such as while kube-apiserver is away, is tried again the next time.
		if c.applyEndpoints(ctx, client, ready) == nil {
			published = ready
		}
	}, endpointsPeriod)
}

func (c *Cluster) applyEndpoints(ctx context.Context, client kubernetes.Interface, ready []string) error {
	slice := discoveryv1apply.EndpointSlice(Service+"-local", Namespace).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: Service, discoveryv1.LabelManagedBy: fieldManager}).
		WithAddressType(discoveryv1.AddressTypeFQDN). // a loopback address may not stand in one
		WithPorts(discoveryv1apply.EndpointPort().WithName("https").WithPort(c.Balancer.Port()))
	for _, address := range ready {
		// The port tells replicas on one machine apart, as the address does on many.
		name := "port-" + address[strings.LastIndex(address, ":")+1:] + ".localhost"
		slice.WithEndpoints(discoveryv1apply.Endpoint().WithAddresses(name).
			WithConditions(discoveryv1apply.EndpointConditions().WithReady(true)))
	}
	_, err := client.DiscoveryV1().EndpointSlices(Namespace).Apply(ctx, slice, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}
