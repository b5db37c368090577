// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/controller/replicas"
	"github.com/portcullis-dev/portcullis/pkg/controller/typecheck"
)

// leaveTimeout bounds how long a server that has stopped tells the others so. They
// find out by themselves within seconds.
const leaveTimeout = 5 * time.Second

// Replica says as which of several servers on one etcd this one runs.
type Replica struct {
	// Client reaches the cluster in which the servers find each other, by Leases.
	Client *rest.Config
	// Namespace is that of the Leases.
	Namespace string
	// Identity tells this server from the others.
	Identity string
}

// addConditions has the conditions of policies written: by this server, or, when it
// is one of several, by the one that leads, of what is in force on all.
func (c *Config) addConditions(policies *catalog.Catalog, types *typecheck.Controller) error {
	if c.Replica == nil {
		c.Extra.Hooks = with(c.Extra.Hooks, ConditionsHook, writeConditions(policies, types))
		return nil
	}
	leases, err := coordinationv1client.NewForConfig(c.Replica.Client)
	if err != nil {
		return fmt.Errorf("client of kube-apiserver: %w", err)
	}
	options := replicas.Options{Leases: leases, Namespace: c.Replica.Namespace, Identity: c.Replica.Identity, Enforcement: policies}
	if c.Snapshot != nil {
		options.Age, options.Able = c.Snapshot.Age, c.Snapshot.Reachable
	}
	if c.member, err = replicas.New(options); err != nil {
		return err
	}
	c.Extra.Ready = append(c.Extra.Ready, healthz.NamedCheck(replicas.CheckName, func(*http.Request) error { return c.member.Ready() }))
	c.Extra.Hooks = with(c.Extra.Hooks, ConditionsHook, joinReplicas(c.member, policies, types))
	return nil
}

// joinReplicas makes the server known to the others, and has it write conditions while
// it leads.
func joinReplicas(member *replicas.Member, policies *catalog.Catalog, types *typecheck.Controller) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		write, err := newConditions(hook.LoopbackClientConfig, policies, types, member)
		if err != nil {
			return err
		}
		member.Start(hook, write)
		return nil
	}
}

// leave tells the other replicas that this one does not judge any more. They find out
// by themselves when it cannot.
func leave(ctx context.Context, member *replicas.Member) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := member.Leave(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "The other replicas could not be told that this one stops; they wait for it until its Lease ends")
	}
}
