// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image takes references of container images apart, as Kyverno does. It does
// not ask registries, and does not know where in an object images stand.
package image

import (
	_ "crypto/sha256" // A digest is valid when its algorithm is linked in.
	_ "crypto/sha512"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// DefaultRegistry is the registry of references that name none.
const DefaultRegistry = "docker.io"

// Longer references are refused unread: no registry has such names.
const maxLength = 4096

// Image is what a reference says. A part that the reference does not have is empty.
type Image struct {
	// Registry is the host, and the port if there is one.
	Registry string
	// Name is the last part of the path.
	Name string
	// Path is all between the registry and the tag or digest.
	Path string
	// Tag is "latest" when the reference has neither tag nor digest.
	Tag string
	// Digest has the form algorithm:hex.
	Digest string
	// Reference is the whole with the registry, and with the digest rather than the tag.
	Reference string
	// ReferenceWithTag is the whole with the registry and the tag. It ends with the
	// colon when there is only a digest.
	ReferenceWithTag string
}

// Parse returns the image of a reference, with DefaultRegistry and the tag latest where
// the reference has none, as Kyverno's pkg/utils/image with its default configuration.
// Unlike container runtimes it does not add library/ to the path.
func Parse(text string) (Image, error) {
	if len(text) > maxLength {
		return Image{}, fmt.Errorf("the image reference has %d characters, which is more than %d", len(text), maxLength)
	}
	parsed, err := reference.Parse(withRegistry(text))
	if err != nil {
		return Image{}, fmt.Errorf("%q is not an image reference: %w", text, err)
	}
	var image Image
	if named, ok := parsed.(reference.Named); ok {
		image.Registry, image.Path = reference.Domain(named), reference.Path(named)
	}
	if tagged, ok := parsed.(reference.Tagged); ok {
		image.Tag = tagged.Tag()
	}
	if digested, ok := parsed.(reference.Digested); ok {
		image.Digest = digested.Digest().String()
	}
	if image.Tag == "" && image.Digest == "" {
		image.Tag = "latest"
	}
	image.Name = image.Path[strings.LastIndexByte(image.Path, '/')+1:]
	image.complete()
	return image, nil
}

// complete fills in the references of the other parts.
func (i *Image) complete() {
	whole := i.Path
	if i.Registry != "" {
		whole = i.Registry + "/" + i.Path
	}
	i.ReferenceWithTag = whole + ":" + i.Tag
	i.Reference = i.ReferenceWithTag
	if i.Digest != "" {
		i.Reference = whole + "@" + i.Digest
	}
	// A host with an underscore is no host to the parser, but is meant as one.
	if host, rest, ok := strings.Cut(i.Path, "/"); ok && i.Registry == "" && strings.Contains(host, "_") {
		i.Registry, i.Path = host, rest
	}
}

// withRegistry returns the reference with the default registry in front of it, unless
// its first part is one: that is so with a dot, a colon or a capital letter in it, and
// with localhost.
func withRegistry(text string) string {
	host, _, ok := strings.Cut(text, "/")
	if ok && (host == "localhost" || strings.ContainsAny(host, ".:") || strings.ToLower(host) != host) {
		return text
	}
	return DefaultRegistry + "/" + text
}

// Fields returns the image as a variable of a policy sees it: without the parts that it
// does not have, but for name and path.
func (i Image) Fields() map[string]any {
	fields := map[string]any{"name": i.Name, "path": i.Path}
	for key, value := range map[string]string{
		"registry": i.Registry, "tag": i.Tag, "digest": i.Digest,
		"reference": i.Reference, "referenceWithTag": i.ReferenceWithTag,
	} {
		if value != "" {
			fields[key] = value
		}
	}
	return fields
}
