// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/blang/semver/v4"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/image"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// Versions and their ranges are not longer.
const maxVersion = 1024

// references returns the functions of texts that name something: an image, a version, a
// place in the network.
func references() []jmespath.Function {
	return []jmespath.Function{
		ofTexts("image_normalize", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			parsed, err := image.Parse(texts[0])
			if err != nil {
				return nil, err
			}
			return made(ctx, run, parsed.Reference)
		}),
		ofTexts("semver_compare", 2, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
			return inRange(texts[0], texts[1])
		}),
		ofTexts("is_external_url", 1, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
			return external(texts[0])
		}),
	}
}

// inRange says whether a version is in a range. A text that is no version counts as
// 0.0.0, as in Kyverno.
func inRange(version, wanted string) (in any, err error) {
	if len(version) > maxVersion || len(wanted) > maxVersion {
		return nil, fmt.Errorf("a version or a range is longer than %d characters", maxVersion)
	}
	// The library panics at alternatives that are empty.
	defer func() {
		if recover() != nil {
			in, err = nil, errors.New("the range has an alternative that is empty")
		}
	}()
	contains, err := semver.ParseRange(wanted)
	if err != nil {
		return nil, fmt.Errorf("%s is not a range of versions: %w", quoted(wanted), err)
	}
	parsed, err := semver.Parse(version)
	if err != nil {
		parsed = semver.Version{}
	}
	return contains(parsed), nil
}

// external says whether the host of a URL is neither this machine nor in a private
// network. A name would have to be looked up, which nothing here does.
func external(text string) (any, error) {
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a URL", quoted(text))
	}
	address, err := netip.ParseAddr(parsed.Hostname())
	if err != nil {
		return nil, fmt.Errorf("the host of %s is not an IP address, and names are not looked up", quoted(text))
	}
	address = address.Unmap()
	return !address.IsLoopback() && !address.IsPrivate(), nil
}
