// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/md5"  //nolint:gosec // It is what the function does; nothing here relies on it.
	"crypto/sha1" //nolint:gosec // Likewise.
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// encodings returns base64 and the digests.
func encodings() []jmespath.Function {
	return []jmespath.Function{
		ofTexts("base64_encode", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			return made(ctx, run, base64.StdEncoding.EncodeToString([]byte(texts[0])))
		}),
		ofTexts("base64_decode", 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
			decoded, err := base64.StdEncoding.DecodeString(texts[0])
			if err != nil {
				return nil, fmt.Errorf("%s is not base64: %w", quoted(texts[0]), err)
			}
			return made(ctx, run, string(decoded))
		}),
		digest("md5", func(text []byte) []byte { sum := md5.Sum(text); return sum[:] }),   //nolint:gosec // Likewise.
		digest("sha1", func(text []byte) []byte { sum := sha1.Sum(text); return sum[:] }), //nolint:gosec // Likewise.
		digest("sha256", func(text []byte) []byte { sum := sha256.Sum256(text); return sum[:] }),
	}
}

// digest returns a function that hashes a text and returns the hash in hexadecimal.
func digest(name string, hash func(text []byte) []byte) jmespath.Function {
	return ofTexts(name, 1, func(ctx context.Context, run *jmespath.Run, texts []string) (any, error) {
		return made(ctx, run, hex.EncodeToString(hash([]byte(texts[0]))))
	})
}
