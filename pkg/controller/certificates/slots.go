// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"encoding/base64"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// slot is a place for a bundle.
type slot struct {
	id     string // within its object
	path   string // JSON pointer
	bundle []byte
}

// apiServiceSlots are those of an APIService.
func apiServiceSlots(t *trust, object map[string]any) ([]slot, error) {
	spec, _, err := unstructured.NestedMap(object, "spec")
	if err != nil {
		return nil, err
	}
	if !t.serves(spec) {
		return nil, nil
	}
	if skips, _, _ := unstructured.NestedBool(spec, "insecureSkipTLSVerify"); skips {
		return nil, errors.New("remove spec.insecureSkipTLSVerify: with it nobody asks who answers, and no authority can be named")
	}
	s, err := slotOf("spec", "/spec", spec)
	return []slot{s}, err
}

// webhookSlots are those of a webhook configuration.
func webhookSlots(t *trust, object map[string]any) ([]slot, error) {
	webhooks, _, err := unstructured.NestedSlice(object, "webhooks")
	if err != nil {
		return nil, err
	}
	var all []slot
	for i, item := range webhooks {
		webhook, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("webhooks[%d] is no object", i)
		}
		config, _, err := unstructured.NestedMap(webhook, "clientConfig")
		if err != nil {
			return nil, fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		if !t.serves(config) {
			continue
		}
		name, _, err := unstructured.NestedString(webhook, "name")
		if err != nil {
			return nil, fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		s, err := slotOf(name, fmt.Sprintf("/webhooks/%d/clientConfig", i), config)
		if err != nil {
			return nil, fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// serves says whether the field service of config names the server's Service.
func (t *trust) serves(config map[string]any) bool {
	namespace, _, _ := unstructured.NestedString(config, "service", "namespace")
	name, _, _ := unstructured.NestedString(config, "service", "name")
	return namespace == t.namespace && name == t.service && name != ""
}

// slotOf is the field caBundle of config. One that is no base64 holds nothing.
func slotOf(id, path string, config map[string]any) (slot, error) {
	encoded, _, err := unstructured.NestedString(config, "caBundle")
	if err != nil {
		return slot{}, err
	}
	bundle, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		bundle = nil
	}
	return slot{id: id, path: path + "/caBundle", bundle: bundle}, nil
}
