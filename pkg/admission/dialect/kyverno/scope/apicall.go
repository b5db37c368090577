// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

const (
	verbGet    = "get"
	verbList   = "list"
	verbCreate = "create"

	methodGet  = "GET"
	methodPost = "POST"
)

// apiCall is the source of an entry that is an answer of the API of the cluster.
type apiCall struct {
	url      *template.Template
	post     bool
	body     []bodyField
	path     *query             // nil for none
	fallback *template.Template // nil for none
	policy   string             // the namespace of a namespaced Policy
	// allowed are the addresses that the policy is known to ask. Variables must not lead
	// to another one: the rights of the writer of the policy are not checked for that.
	allowed []address
}

// bodyField is one field of the body of a POST.
type bodyField struct {
	key   string
	value *template.Template // nil for null
}

func (c *compiler) apiCall(spec *kyvernov1.APICall) source {
	const place = "apiCall"
	path := c.path.Child(place)
	switch {
	case spec.Service != nil:
		c.errs = append(c.errs, field.Forbidden(path.Child("service"),
			"services are not called: policies see the API of the cluster, by urlPath, and nothing else"))
		return nil
	case spec.URLPath == "":
		c.errs = append(c.errs, field.Required(path.Child("urlPath"), "the path of a request to the API of the cluster"))
		return nil
	}
	compiled := &apiCall{
		url:      c.template(spec.URLPath, place, "urlPath"),
		post:     spec.Method == methodPost,
		path:     c.query(spec.JMESPath, place, "jmesPath"),
		fallback: c.json(spec.Default, place, "default"),
		policy:   c.namespace,
	}
	if spec.Method != "" && spec.Method != methodGet && spec.Method != methodPost {
		c.errs = append(c.errs, field.NotSupported(path.Child("method"), spec.Method, []string{methodGet, methodPost}))
		return nil
	}
	if compiled.post { // as in Kyverno, a GET has no use for data
		for i := range spec.Data {
			value := c.json(spec.Data[i].Value, place, "data", strconv.Itoa(i), "value")
			compiled.body = append(compiled.body, bodyField{key: spec.Data[i].Key, value: value})
		}
	}
	if err := compiled.know(spec.URLPath); err != nil {
		c.errs = append(c.errs, field.Invalid(path.Child("urlPath"), spec.URLPath, err.Error()))
		return nil
	}
	for _, allowed := range compiled.allowed {
		c.reads = append(c.reads, compiled.read(allowed, path))
	}
	return compiled
}

// know finds the addresses that the call may have, and refuses those that it must not.
func (s *apiCall) know(text string) error {
	if fixed, ok := s.url.Static(); ok {
		plain, ok := fixed.(string)
		if !ok {
			return fmt.Errorf("a string is needed, and this is %s", typeOf(fixed))
		}
		target, _, err := parseAddress(plain)
		if err != nil {
			return err
		}
		s.allowed = []address{target}
		return s.check(target)
	}
	s.allowed = patterns(text)
	if len(s.allowed) > 1 && s.post {
		s.allowed = s.allowed[:1] // what is created has no name in the path
	}
	for i := range s.allowed {
		if err := s.check(s.allowed[i]); err != nil {
			return err
		}
		if s.policy != "" && s.allowed[i].namespace == anything {
			s.allowed[i].namespace = s.policy
		}
	}
	return nil
}

// check refuses an address, or one with anything in it, that must not be asked.
func (s *apiCall) check(target address) error {
	if s.post {
		if err := checkReview(target); err != nil {
			return err
		}
	}
	if s.policy == "" || fits(target.namespace, s.policy) || target.isNamespace(s.policy) {
		return nil
	}
	return fmt.Errorf("the path must have /namespaces/%s/ in it: a Policy reads nothing outside of its namespace", s.policy)
}

// read is what an address asks for, as the rights of users are asked about.
func (s *apiCall) read(target address, path *field.Path) policy.Read {
	read := policy.Read{Field: path.Child("urlPath"), Verb: verbGet}
	switch {
	case s.post:
		read.Verb = verbCreate
	case target.name == "":
		read.Verb = verbList
	}
	read.Namespace, read.Name = known(target.namespace), known(target.name)
	if target.isNamespace(s.policy) && s.policy != "" {
		read.Name = s.policy
	}
	if target.resource.Resource == anything {
		return read
	}
	read.Resource = target.resource
	return read
}

// known returns what is known before a request of a part of an address.
func known(part string) string {
	if part == anything {
		return ""
	}
	return part
}

// value implements source as Kyverno's pkg/engine/apicall does: the default stands where
// the call fails, not where variables or the jmesPath do, which is not applied to it.
func (s *apiCall) value(ctx context.Context, from horizon) (any, error) {
	path, err := s.path.search(ctx, from)
	if err != nil {
		return nil, err
	}
	target, selector, err := s.target(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("urlPath: %w", err)
	}
	body, err := s.content(ctx, from)
	if err != nil {
		return nil, err
	}
	answer, err := s.ask(ctx, from, target, selector, body)
	if err != nil && s.fallback != nil && !lasts(ctx, err) {
		value, err := render(ctx, s.fallback, from)
		if err != nil {
			return nil, fmt.Errorf("default: %w", err)
		}
		return value, nil
	}
	if err != nil || path.none() {
		return answer, err
	}
	found, err := path.in(ctx, from.v.run, answer)
	if err != nil {
		return nil, fmt.Errorf("jmesPath: %w", err)
	}
	return found, nil
}

// target returns the address that the call has for a request.
func (s *apiCall) target(ctx context.Context, from horizon) (address, labels.Selector, error) {
	plain, err := text(ctx, s.url, from)
	if err != nil {
		return address{}, nil, err
	}
	if err := from.v.run.Spend(ctx, 1+len(plain), 8*len(plain)); err != nil {
		return address{}, nil, err
	}
	target, selector, err := parseAddress(plain)
	if err == nil {
		err = s.check(target)
	}
	if err != nil {
		return address{}, nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	if !slices.ContainsFunc(s.allowed, func(a address) bool { return a.covers(target) }) {
		return address{}, nil, fmt.Errorf("%w: the variables lead to %s, which is not where the path leads as it is written: they must not add parts to it", errRefused, target)
	}
	return target, selector, nil
}

// content returns the body of a POST.
func (s *apiCall) content(ctx context.Context, from horizon) (map[string]any, error) {
	body := make(map[string]any, len(s.body))
	for i := range s.body {
		value, err := render(ctx, s.body[i].value, from)
		if err != nil {
			return nil, fmt.Errorf("data[%d]: %w", i, err)
		}
		body[s.body[i].key] = value
	}
	return body, nil
}

// ask makes the call.
func (s *apiCall) ask(ctx context.Context, from horizon, target address, selector labels.Selector, body map[string]any) (any, error) {
	if s.post {
		return review(ctx, from, target, body)
	}
	return get(ctx, from, target, selector)
}
