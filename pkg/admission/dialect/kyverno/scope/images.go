// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/image"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// imagesKey names the images of the object that came in.
var imagesKey = request.NewKey[*images]("kyverno images")

// images are those of an object.
type images struct {
	value map[string]any // empty when the object has none
	count int
	err   error
}

// imagesValue returns the variable images, which is absent for an object without any. An
// image that cannot be parsed is an error of the variable, as in Kyverno.
func (v *Variables) imagesValue(ctx context.Context) (value any, ok bool, err error) {
	if v.images == nil {
		found, err := v.findImages()
		if err != nil {
			return nil, false, err
		}
		if err := v.run.Spend(ctx, found.count*imageSteps, found.count*imageSize); err != nil {
			return nil, false, err
		}
		v.images = found
	}
	if v.images.err != nil {
		return nil, false, fmt.Errorf("images: %w", v.images.err)
	}
	return v.images.value, len(v.images.value) > 0, nil
}

// What finding an image takes, about.
const (
	imageSteps = 16
	imageSize  = 512
)

// findImages looks at the object as it has come to the policy: as in Kyverno, its rules
// do not see here what former ones have made of it.
func (v *Variables) findImages() (*images, error) {
	return request.Derive(v.in.Request, imagesKey, func(req *request.Request) (*images, error) {
		return imagesOf(req.Object), nil
	})
}

// podSpecPath returns where the kinds that Kyverno's pkg/utils/api knows have the spec of
// a pod. As there, the group of the kind does not matter.
func podSpecPath(kind string) []string {
	switch kind {
	case "Pod":
		return []string{"spec"}
	case "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet":
		return []string{"spec", "template", "spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}

// imagesOf finds the images of an object, by the kind and name of their containers.
func imagesOf(object *unstructured.Unstructured) *images {
	found := &images{value: map[string]any{}}
	if object == nil {
		return found
	}
	path := podSpecPath(object.GetKind())
	if path == nil {
		return found
	}
	var current any = object.Object
	for _, key := range path {
		fields, ok := current.(map[string]any)
		if !ok {
			found.err = fmt.Errorf("%s of the object is no object, and has no containers", strings.Join(path, "."))
			return found
		}
		if current = fields[key]; current == nil {
			return found
		}
	}
	spec, ok := current.(map[string]any)
	if !ok {
		found.err = fmt.Errorf("%s of the object is no object, and has no containers", strings.Join(path, "."))
		return found
	}
	pointer := "/" + strings.Join(path, "/")
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		if found.err = found.add(spec[field], field, pointer+"/"+field); found.err != nil {
			return found
		}
	}
	return found
}

// add adds the images of one list of containers.
func (i *images) add(list any, field, pointer string) error {
	if list == nil {
		return nil
	}
	containers, ok := list.([]any)
	if !ok {
		return fmt.Errorf("%s is no list", pointer)
	}
	byName := map[string]any{}
	for index, item := range containers {
		container, ok := item.(map[string]any)
		if !ok {
			continue
		}
		name, ok := container["name"].(string)
		if !ok {
			return fmt.Errorf("%s/%d has no name", pointer, index)
		}
		text, ok := container["image"].(string)
		if !ok || strings.TrimSpace(text) == "" {
			continue
		}
		parsed, err := image.Parse(text)
		if err != nil {
			return fmt.Errorf("%s/%d/image: %w", pointer, index, err)
		}
		fields := parsed.Fields()
		fields["jsonPointer"] = pointer + "/" + strconv.Itoa(index) + "/image"
		byName[name] = fields
		i.count++
	}
	if len(byName) > 0 {
		i.value[field] = byName
	}
	return nil
}
