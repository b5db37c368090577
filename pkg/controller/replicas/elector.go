// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	// leaderName is that of the Lease that the leader holds.
	leaderName = "portcullis-leader"
	// standDownAfter is how long a leader may be unable to write.
	standDownAfter = 10 * time.Second
	// ablePeriod is how often it is asked whether it is able.
	ablePeriod = time.Second
)

// elector stands for election.
type elector struct {
	config         leaderelection.LeaderElectionConfig
	able           func() error // returns why what the leader does cannot be done here
	standDownAfter time.Duration
	ablePeriod     time.Duration
}

// newElector returns an elector with the times of the controllers of Kubernetes, see
// RecommendedDefaultLeaderElectionConfiguration in k8s.io/component-base.
func newElector(leases coordinationv1client.LeasesGetter, namespace, holder string, able func() error) *elector {
	return &elector{able: able, standDownAfter: standDownAfter, ablePeriod: ablePeriod, config: leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaderName},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: holder},
			Labels:     labels(leaseOfLeader),
		},
		Name:            leaderName,
		ReleaseOnCancel: true,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
	}}
}

// run stands for election until ctx ends, as long as it is able to do what the leader
// does, and calls lead while it is elected.
func (e *elector) run(ctx context.Context, lead func(ctx context.Context)) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if e.able() == nil {
			e.term(ctx, lead)
		}
	}, e.config.RetryPeriod)
}

// standDown calls end when what the leader does cannot be done here for long.
func (e *elector) standDown(ctx context.Context, end func()) {
	var since time.Time
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := e.able()
		switch {
		case err == nil:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= e.standDownAfter:
			klog.FromContext(ctx).Error(err, "This server leaves it to others to lead")
			end()
		}
	}, e.ablePeriod)
}

// term stands for one election. It returns when the term has ended and lead with it.
// When ctx ends, the Lease is released after lead has returned: client-go would not
// wait for it.
func (e *elector) term(ctx context.Context, lead func(ctx context.Context)) {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	watching.Go(func() { e.standDown(ctx, leave) })
	term, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var leading sync.Mutex // held while lead runs
	config := e.config
	config.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(term context.Context) {
			leading.Lock()
			defer leading.Unlock()
			term, cancel := context.WithCancel(term)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			if term.Err() == nil && ctx.Err() == nil {
				lead(term)
			}
		},
		OnStoppedLeading: func() {},
	}
	stop := context.AfterFunc(ctx, func() {
		leading.Lock()
		defer leading.Unlock()
		end()
	})
	defer stop()
	leader, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		klog.FromContext(ctx).Error(err, "This server cannot stand for election")
		return
	}
	leader.Run(term)
	leading.Lock() // when lead has returned
	defer leading.Unlock()
}
