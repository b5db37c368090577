// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// rounds is how often each question is asked: where several bindings allow, the
// server names any of them.
const rounds = 20

// question is a line of the file of answers. It is about a resource, or about a
// path when it has one.
type question struct {
	User        string   `json:"user,omitempty"`
	Groups      []string `json:"groups,omitempty"`
	Verb        string   `json:"verb"`
	Group       string   `json:"group,omitempty"`
	Resource    string   `json:"resource,omitempty"`
	Subresource string   `json:"subresource,omitempty"`
	Namespace   string   `json:"namespace,omitempty"`
	Name        string   `json:"name,omitempty"`
	Path        string   `json:"path,omitempty"`
	answer
}

type answer struct {
	Allowed bool     `json:"allowed"`
	Denied  bool     `json:"denied,omitempty"`
	Error   string   `json:"error,omitempty"`
	Reasons []string `json:"reasons,omitempty"` // one, or all that were heard
}

func (s *server) writeAnswers(ctx context.Context, out io.Writer, o options) error {
	data, err := os.ReadFile(o.questions)
	if err != nil {
		return err
	}
	var questions []question
	if err := yaml.UnmarshalStrict(data, &questions); err != nil {
		return fmt.Errorf("%s: %w", o.questions, err)
	}
	if o.objects != "" {
		if err := s.create(ctx, o.objects); err != nil {
			return err
		}
	}
	ask := func(ctx context.Context) ([]answer, error) { return s.askAll(ctx, questions) }
	answers, err := settled(ctx, o.settle, ask, func(a, b []answer) bool { return slices.EqualFunc(a, b, sameDecision) })
	if err != nil {
		return err
	}
	for range rounds {
		again, err := s.askAll(ctx, questions)
		if err != nil {
			return err
		}
		for i := range answers {
			if !sameDecision(answers[i], again[i]) {
				return fmt.Errorf("%s: question %d has two answers: %v and %v", o.questions, i+1, answers[i], again[i])
			}
			answers[i].Reasons = append(answers[i].Reasons, again[i].Reasons...)
		}
	}
	return s.writeAll(out, questions, answers)
}

func sameDecision(a, b answer) bool {
	return a.Allowed == b.Allowed && a.Denied == b.Denied && a.Error == b.Error
}

func (s *server) writeAll(out io.Writer, questions []question, answers []answer) error {
	fmt.Fprintf(out, "# Answers of kube-apiserver %s to SubjectAccessReviews, as hack/rbacanswers has recorded them.\n", s.version)
	for i, asked := range questions {
		slices.Sort(answers[i].Reasons)
		answers[i].Reasons = slices.Compact(answers[i].Reasons)
		asked.answer = answers[i]
		line, err := json.Marshal(asked)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "- %s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) askAll(ctx context.Context, questions []question) ([]answer, error) {
	answers := make([]answer, 0, len(questions))
	for i, asked := range questions {
		got, err := s.ask(ctx, asked)
		if err != nil {
			return nil, fmt.Errorf("question %d: %w", i+1, err)
		}
		answers = append(answers, got)
	}
	return answers, nil
}

func (s *server) ask(ctx context.Context, q question) (answer, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: q.User, Groups: q.Groups}}
	if q.Path != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: q.Path, Verb: q.Verb}
	} else {
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: q.Verb, Group: q.Group, Version: "*", Resource: q.Resource, Subresource: q.Subresource,
			Namespace: q.Namespace, Name: q.Name,
		}
	}
	got, err := s.typed.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return answer{}, err
	}
	status := got.Status
	return answer{Allowed: status.Allowed, Denied: status.Denied, Error: status.EvaluationError, Reasons: []string{status.Reason}}, nil
}
