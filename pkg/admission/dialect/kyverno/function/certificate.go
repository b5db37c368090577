// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

const (
	// A certificate that is longer is none.
	maxCertificate = 64 << 10
	// Parts of a certificate stand in its description again and again.
	certificateCopies = 8
)

// publicKey is the key of a certificate as policies see it.
type publicKey struct {
	N string
	E int
}

var errNotRSA = errors.New("the certificate does not have an RSA key")

// decodeCertificate returns the fields that Go's crypto/x509 has for the first
// certificate or certificate request of a text in PEM, with the key as decimal numbers.
// Only RSA keys are understood, as in Kyverno.
func decodeCertificate(ctx context.Context, run *jmespath.Run, text string) (any, error) {
	if len(text) > maxCertificate {
		return nil, fmt.Errorf("the text is longer than %d characters", maxCertificate)
	}
	if err := run.Spend(ctx, len(text), certificateCopies*len(text)); err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the text has no PEM block")
	}
	switch block.Type {
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the text is not a certificate: %w", err)
		}
		key, ok := certificate.PublicKey.(*rsa.PublicKey)
		if !ok {
			return nil, errNotRSA
		}
		certificate.PublicKey = publicKey{N: key.N.String(), E: key.E}
		return described(ctx, run, certificate)
	case "CERTIFICATE REQUEST":
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the text is not a certificate request: %w", err)
		}
		key, ok := request.PublicKey.(*rsa.PublicKey)
		if !ok {
			return nil, errNotRSA
		}
		request.PublicKey = publicKey{N: key.N.String(), E: key.E}
		return described(ctx, run, request)
	default:
		return nil, fmt.Errorf("the PEM block is %s, neither a CERTIFICATE nor a CERTIFICATE REQUEST", quoted(block.Type))
	}
}

// described returns the fields of a struct as JSON has them.
func described(ctx context.Context, run *jmespath.Run, of any) (any, error) {
	encoded, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("the certificate cannot be described: %w", err)
	}
	return parseJSON(ctx, run, string(encoded))
}
