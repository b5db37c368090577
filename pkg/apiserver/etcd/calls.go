// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// answerTimeout is how long etcd may take to answer one call. A request whose
// answer needs etcd fails within 3 s when etcd is gone: the first call that is
// not answered ends it.
const answerTimeout = 2500 * time.Millisecond

// unansweredError says that a call to etcd was not answered. A write may have
// been done.
type unansweredError struct{ reason string }

func (e *unansweredError) Error() string { return e.reason }

// boundedCalls gives every call to etcd answerTimeout, and learns from the
// answers. Watches do not pass through it.
type boundedCalls struct {
	kubernetes.Interface
	connection *connection
}

func (b boundedCalls) Get(ctx context.Context, key string, opts kubernetes.GetOptions) (response kubernetes.GetResponse, err error) {
	err = b.connection.call(ctx, func(ctx context.Context) (int64, error) {
		response, err = b.Interface.Get(ctx, key, opts)
		return response.Revision, err
	})
	return response, err
}

// List leaves a list without a deadline alone: it is the watch cache's, which
// reads everything at once and goes on asking.
func (b boundedCalls) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (response kubernetes.ListResponse, err error) {
	if _, bounded := ctx.Deadline(); !bounded {
		began := b.connection.history.mark()
		if response, err = b.Interface.List(ctx, prefix, opts); err == nil {
			b.connection.history.note(ctx, began, response.Revision)
		}
		return response, err
	}
	err = b.connection.call(ctx, func(ctx context.Context) (int64, error) {
		response, err = b.Interface.List(ctx, prefix, opts)
		return response.Revision, err
	})
	return response, err
}

func (b boundedCalls) Count(ctx context.Context, prefix string, opts kubernetes.CountOptions) (count int64, err error) {
	err = b.connection.call(ctx, func(ctx context.Context) (int64, error) {
		count, err = b.Interface.Count(ctx, prefix, opts)
		return 0, err
	})
	return count, err
}

func (b boundedCalls) OptimisticPut(ctx context.Context, key string, value []byte, expected int64, opts kubernetes.PutOptions) (response kubernetes.PutResponse, err error) {
	err = b.connection.call(ctx, func(ctx context.Context) (int64, error) {
		response, err = b.Interface.OptimisticPut(ctx, key, value, expected, opts)
		return response.Revision, err
	})
	return response, err
}

func (b boundedCalls) OptimisticDelete(ctx context.Context, key string, expected int64, opts kubernetes.DeleteOptions) (response kubernetes.DeleteResponse, err error) {
	err = b.connection.call(ctx, func(ctx context.Context) (int64, error) {
		response, err = b.Interface.OptimisticDelete(ctx, key, expected, opts)
		return response.Revision, err
	})
	return response, err
}

// call returns an unansweredError when etcd does not answer, with the reason that
// the last attempt had, and every other error as it is. A caller who does not
// wait for the answer learns nothing of etcd.
func (c *connection) call(caller context.Context, do func(context.Context) (revision int64, err error)) error {
	ctx, cancel := context.WithTimeout(caller, answerTimeout)
	defer cancel()
	var last error
	ctx = context.WithValue(ctx, lastAttempt{}, &last)
	before := c.history.mark()
	revision, err := do(ctx)
	if isUnanswered(err) {
		c.history.doubt()
		if caller.Err() != nil {
			return caller.Err()
		}
		failure := &unansweredError{reason: reasonOf(err, last)}
		c.failure.Store(failure)
		return failure
	}
	if err == nil {
		c.failure.Store(nil)
		c.history.note(ctx, before, revision)
	}
	return err
}

// lastAttempt is the key under which a call keeps what its last attempt met: the
// client of etcd asks several times, and returns only that the time was over.
type lastAttempt struct{}

// noteAttempt is a grpc.UnaryClientInterceptor.
func noteAttempt(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, request, reply, conn, opts...)
	if last, ok := ctx.Value(lastAttempt{}).(*error); ok {
		*last = err
	}
	return err
}

// isUnanswered tells the errors of an etcd that cannot be reached, or has no
// leader, from those that are answers.
func isUnanswered(err error) bool {
	code := status.Code(err)
	var answer rpctypes.EtcdError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return true
	case errors.As(err, &answer):
		code = answer.Code()
	}
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

// reasonOf returns what a user can act upon, in one line. An attempt that waits
// for a connection says at the end why there is none.
func reasonOf(err, last error) string {
	if last == nil {
		last = err
	}
	text := status.Convert(last).Message()
	_, balancer, waited := strings.Cut(text, "latest balancer error: ")
	switch {
	case waited:
		text = balancer
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return fmt.Sprintf("no answer within %s", answerTimeout)
	}
	// gRPC puts each layer into the quotes of the next one.
	if inner, quoted := strings.CutPrefix(text, `connection error: desc = "`); quoted {
		text = strings.TrimPrefix(strings.TrimSuffix(inner, `"`), "transport: ")
	}
	return text
}
