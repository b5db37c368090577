// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver/access"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionreview"
)

// The direct review doors. Whoever is in a cluster POSTs to the resources instead,
// through its kube-apiserver.
const (
	ReviewPath   = "/admission/v1/validate"
	MutationPath = "/admission/v1/mutate"
)

// The resources that are review doors.
const (
	validationsResource = "validations"
	mutationsResource   = "mutations"
)

// addReviewDoors adds the doors to both phases of the chain. Each is a path and a
// resource, with the same judge behind them, which at returns for the one and for the
// other: what is POSTed to the resource does not take the way of objects of the API,
// which would decode it with its objects, encode it again for the audit log, and convert
// it. All share one limit of reviews in flight.
func (c *Config) addReviewDoors(validate, mutate admissionreview.Judge, at func(door string, judge admissionreview.Judge) admissionreview.Judge, view func() cluster.View) {
	room := admissionreview.NewRoom()
	for _, door := range []struct {
		path, resource, singular string
		judge                    admissionreview.Judge
	}{
		{ReviewPath, validationsResource, "validation", validate},
		{MutationPath, mutationsResource, "mutation", mutate},
	} {
		direct, aggregated := door.path, resourcePath(door.resource)
		c.Extra.Handlers = with(c.Extra.Handlers, direct, http.Handler(admissionreview.NewHandler(at(direct, door.judge), view, room)))
		c.Extra.Posts = with(c.Extra.Posts, aggregated, http.Handler(admissionreview.NewHandler(at(aggregated, door.judge), view, room)))
		c.leaveOutOfOpenAPI(aggregated)
		c.Extra.Virtual = with(c.Extra.Virtual, door.resource, rest.Storage(admissionreview.NewREST(door.singular)))
	}
	build := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(next http.Handler, generic *genericapiserver.Config) http.Handler {
		return build(withPosts(next, c.Extra.Posts), generic)
	}
}

// leaveOutOfOpenAPI keeps a resource out of the documents: reviews have no OpenAPI
// definition, and two resources of one kind would have operations with the same id, on
// which the generic server exits.
func (c *Config) leaveOutOfOpenAPI(path string) {
	c.Generic.OpenAPIConfig.IgnorePrefixes = append(c.Generic.OpenAPIConfig.IgnorePrefixes, path)
	c.Generic.OpenAPIV3Config.IgnorePrefixes = append(c.Generic.OpenAPIV3Config.IgnorePrefixes, path)
}

// withPosts has posts answer, by path, what is POSTed there, and next all else.
func withPosts(next http.Handler, posts map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if post, ok := posts[r.URL.Path]; ok {
				post.ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// resourcePath is the path of a resource of the API group.
func resourcePath(resource string) string {
	return genericapiserver.APIGroupPrefix + "/" + v1alpha1.SchemeGroupVersion.String() + "/" + resource
}

// hurryQuestions bounds the time that callers may take to send a review or a
// preview, outside of all other filters.
func (c *Config) hurryQuestions() {
	build := c.Generic.BuildHandlerChainFunc
	c.Generic.BuildHandlerChainFunc = func(next http.Handler, generic *genericapiserver.Config) http.Handler {
		return admissionreview.WithBodyTimeout(build(next, generic), ReviewPath, MutationPath,
			resourcePath(validationsResource), resourcePath(mutationsResource), resourcePath(previewResource))
	}
}

// SetAnonymousReviews lets callers without credentials POST to the direct review doors,
// and to nothing else; false does not. Authorization must be set before.
func (c *Config) SetAnonymousReviews(allowed bool) error {
	if !allowed {
		return nil
	}
	authorization := &c.Generic.Authorization
	if authorization.Authorizer == nil {
		return errors.New("let anonymous callers review: authorization is not set")
	}
	both, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "anonymous-reviews", Authorizer: access.AnonymousPosts(ReviewPath, MutationPath)},
		union.NamedAuthorizer{AuthorizerName: "others", Authorizer: authorization.Authorizer},
	)
	if err != nil {
		return fmt.Errorf("let anonymous callers review: %w", err)
	}
	authorization.Authorizer = both
	return nil
}
