// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/pki"
)

// What a Secret holds: pairs under these names and those of its leaves, with the
// suffixes, and under bundleKey the authorities to trust, the signer first.
const (
	bundleKey  = "ca.crt"
	signer     = "signer"
	nextSigner = "next-signer"
	certSuffix = ".crt"
	keySuffix  = ".key"
)

const (
	authorityLifetime = 10 * 365 * 24 * time.Hour
	leafLifetime      = 90 * 24 * time.Hour
	// overlap is how long before its end an authority gets a successor.
	overlap = 365 * 24 * time.Hour
	// maxTrusted bounds the bundle, whatever happens to a Secret.
	maxTrusted = 8
	// maxNames bounds the names that a certificate keeps from the one before.
	maxNames = 100
)

// plan says which certificates a Secret holds.
type plan struct {
	authority string // the common name
	// settle is how long a new authority is at least trusted before it signs.
	settle time.Duration
	leaves []leaf
}

// leaf is a certificate that is shown to others.
type leaf struct {
	name string
	spec pki.Spec
}

// contents are what a Secret holds, read.
type contents struct {
	data map[string][]byte
	// trusted are the authorities in data[bundleKey].
	trusted []*x509.Certificate
	leaves  map[string]*pki.KeyPair
}

// renewal is one look at a Secret. Its result depends on nothing but its fields and
// the random numbers in new keys.
type renewal struct {
	plan
	now time.Time
	// everywhere says whether all who are to trust an authority do.
	everywhere func(*x509.Certificate) bool

	contents
	reasons []string
}

// renewed returns what a Secret with current should hold at now, and the reasons
// why that is not what it holds: none when it is.
func (p plan) renewed(current map[string][]byte, now time.Time, everywhere func(*x509.Certificate) bool) (*contents, []string, error) {
	r := renewal{plan: p, now: now, everywhere: everywhere}
	r.data = maps.Clone(current)
	if r.data == nil {
		r.data = map[string][]byte{}
	}
	r.contents.leaves = map[string]*pki.KeyPair{}

	signs, err := r.renewAuthorities()
	if err != nil {
		return nil, nil, err
	}
	for _, l := range p.leaves {
		if err := r.renewLeaf(l, signs); err != nil {
			return nil, nil, err
		}
	}
	return &r.contents, r.reasons, nil
}

// renewAuthorities returns the authority that signs now.
func (r *renewal) renewAuthorities() (signs *pki.KeyPair, err error) {
	signs, next := r.readAuthority(signer), r.readAuthority(nextSigner)
	switch {
	case signs == nil && next == nil:
		signs, err = r.issue(signer, r.authoritySpec(), nil, "there is no authority that can sign")
	case signs == nil:
		signs, next = r.promote(next, "the authority before it can sign no more"), nil
	case next == nil && !r.now.Before(signs.Cert.NotAfter.Add(-overlap)):
		next, err = r.issue(nextSigner, r.authoritySpec(), nil, "the authority ends on "+date(signs.Cert.NotAfter))
	case next != nil && !r.now.Before(next.Cert.NotBefore.Add(r.settle)) && r.everywhere(next.Cert):
		signs, next = r.promote(next, "it is trusted everywhere"), nil
	}
	if err != nil {
		return nil, err
	}
	r.renewBundle(signs, next)
	return signs, nil
}

// readAuthority returns nil when there is none of this name that can sign. One
// that is not valid yet is kept: others trust it, and it is the clock that is wrong.
func (r *renewal) readAuthority(name string) *pki.KeyPair {
	pair, err := r.read(name)
	switch {
	case errors.Is(err, errAbsent):
		return nil
	case err == nil && !pair.Cert.IsCA:
		err = fmt.Errorf("it is for %s", pair.Cert.Subject)
	case err == nil && !r.now.Before(pair.Cert.NotAfter):
		err = fmt.Errorf("it has ended on %s", date(pair.Cert.NotAfter))
	}
	if err == nil {
		return pair
	}
	r.remove(name)
	r.note(name, err.Error())
	return nil
}

func (r *renewal) promote(next *pki.KeyPair, reason string) *pki.KeyPair {
	r.remove(nextSigner)
	r.write(signer, next)
	r.note(signer, "the next authority signs: "+reason)
	return next
}

// renewBundle has the authorities trusted that sign or will sign, and those that
// did and have not ended.
func (r *renewal) renewBundle(signs, next *pki.KeyPair) {
	add := func(cert *x509.Certificate) {
		if len(r.trusted) < maxTrusted && !slices.ContainsFunc(r.trusted, cert.Equal) {
			r.trusted = append(r.trusted, cert)
		}
	}
	add(signs.Cert)
	if next != nil {
		add(next.Cert)
	}
	for _, cert := range pki.Decode(r.data[bundleKey]) {
		if cert.IsCA && r.now.Before(cert.NotAfter) {
			add(cert)
		}
	}
	bundle := pki.Encode(r.trusted...)
	if !bytes.Equal(bundle, r.data[bundleKey]) {
		r.data[bundleKey] = bundle
		r.reasons = append(r.reasons, bundleKey+": other authorities are to be trusted")
	}
}

func (r *renewal) renewLeaf(l leaf, signs *pki.KeyPair) error {
	pair, err := r.read(l.name)
	if err == nil {
		err = r.checkLeaf(pair.Cert, l.spec, signs.Cert)
	}
	if err == nil {
		r.contents.leaves[l.name] = pair
		return nil
	}
	if pair != nil && issuer(pair.Cert, r.trusted) != nil {
		l.spec.Names = r.namesOf(pair.Cert, l.spec)
	}
	pair, issueErr := r.issue(l.name, l.spec, signs, err.Error())
	if issueErr != nil {
		return issueErr
	}
	r.contents.leaves[l.name] = pair
	return nil
}

// checkLeaf says why cert is to be made anew: it is not what it should be, nobody
// trusts it, or two thirds of its life are over and a new one would live longer.
func (r *renewal) checkLeaf(cert *x509.Certificate, spec pki.Spec, signs *x509.Certificate) error {
	if err := spec.Describes(cert); err != nil {
		return err
	}
	if issuer(cert, r.trusted) == nil {
		return errors.New("no authority that is trusted has signed it")
	}
	if r.now.Before(cert.NotBefore) {
		return fmt.Errorf("it is not valid before %s", cert.NotBefore.Format(time.RFC3339))
	}
	if !r.now.Before(cert.NotAfter) {
		return fmt.Errorf("it has ended on %s", date(cert.NotAfter))
	}
	due := cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 3 * 2)
	if !r.now.Before(due) && cert.NotAfter.Before(signs.NotAfter) {
		return fmt.Errorf("it ends on %s", date(cert.NotAfter))
	}
	return nil
}

// issuer returns the authority among trusted that has signed cert, or nil.
func issuer(cert *x509.Certificate, trusted []*x509.Certificate) *x509.Certificate {
	for _, authority := range trusted {
		if cert.CheckSignatureFrom(authority) == nil {
			return authority
		}
	}
	return nil
}

// namesOf are the names of spec, and those of the certificate before unless its
// time has come: during an upgrade two versions that want other names would
// otherwise take them from each other.
func (r *renewal) namesOf(before *x509.Certificate, spec pki.Spec) []string {
	if spec.Describes(before) == nil {
		return spec.Names
	}
	names := slices.Concat(spec.Names, before.DNSNames)
	for _, ip := range before.IPAddresses {
		names = append(names, ip.String())
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxNames {
		return spec.Names
	}
	return names
}

func (p plan) authoritySpec() pki.Spec {
	return pki.Spec{CommonName: p.authority, Lifetime: authorityLifetime}
}

// errAbsent says that a Secret holds no pair of a name.
var errAbsent = errors.New("there is none yet")

func (r *renewal) read(name string) (*pki.KeyPair, error) {
	cert, key := r.data[name+certSuffix], r.data[name+keySuffix]
	if len(cert) == 0 && len(key) == 0 {
		return nil, errAbsent
	}
	return pki.ParseKeyPair(cert, key)
}

func (r *renewal) issue(name string, spec pki.Spec, signs *pki.KeyPair, reason string) (*pki.KeyPair, error) {
	pair, err := spec.Issue(signs, r.now)
	if err != nil {
		return nil, fmt.Errorf("make %s%s: %w", name, certSuffix, err)
	}
	r.write(name, pair)
	r.note(name, reason)
	return pair, nil
}

func (r *renewal) write(name string, pair *pki.KeyPair) {
	r.data[name+certSuffix], r.data[name+keySuffix] = pair.CertPEM, pair.KeyPEM
}

func (r *renewal) remove(name string) {
	delete(r.data, name+certSuffix)
	delete(r.data, name+keySuffix)
}

func (r *renewal) note(name, reason string) {
	r.reasons = append(r.reasons, name+certSuffix+": "+reason)
}

func date(t time.Time) string { return t.Format(time.DateOnly) }
