// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestOpen(t *testing.T) {
	t.Run("broken", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("kind: ["), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, clock.RealClock{})
		if want := dir + "/a.yaml: document 1, line 1: broken YAML"; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	})
	t.Run("absent", func(t *testing.T) {
		_, err := Open(filepath.Join(t.TempDir(), "absent"), clock.RealClock{})
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want a directory that does not exist", err)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		d, err := Open("", clocktesting.NewFakeClock(time.Unix(1000, 0)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := d.Status(), (Status{LoadedAt: time.Unix(1000, 0)}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, err := d.View().Namespace(t.Context(), "default"); err != nil {
			t.Error(err)
		}
	})
	t.Run("just written", func(t *testing.T) {
		now := time.Now()
		files := clocktesting.NewFakeClock(now)
		w := opened(t, map[string]string{"a.yaml": configMap("a")}, func(d *Directory) {
			d.clock = files
			if err := os.Chtimes(filepath.Join(d.path, "a.yaml"), now, now.Add(-settle/2)); err != nil {
				t.Fatal(err)
			}
		})
		w.want("a", 0, 0, "")
		if got := files.Since(now); got != settle {
			t.Errorf("waited for %s, want %s", got, settle)
		}
	})
	t.Run("changes while it settles", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "a.yaml")
		sleeper := &sleeper{FakeClock: clocktesting.NewFakeClock(time.Now())}
		write := func(content string) {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, sleeper.Now(), sleeper.Now()); err != nil {
				t.Fatal(err)
			}
		}
		content := configMap("a")
		sleeper.meanwhile = func() {
			if sleeper.times < 3 {
				content += "---\n" + configMap(fmt.Sprintf("b%d", sleeper.times))
				write(content)
			}
		}
		write(content)
		reads := 0
		d := newDirectory(dir, sleeper, defaultLimits())
		read := d.read
		d.read = func(found *listing) *outcome {
			reads++
			return read(found)
		}
		if err := d.start(); err != nil {
			t.Fatal(err)
		}
		if got := configMaps(t, d.View()); got != "a b1 b2" {
			t.Errorf("got ConfigMaps %q", got)
		}
		if reads != 1 {
			t.Errorf("read %d times, want once, when the file had settled", reads)
		}
	})
	t.Run("changes meanwhile", func(t *testing.T) {
		for _, changes := range []int{attempts - 1, attempts} {
			dir := t.TempDir()
			d := newDirectory(dir, clocktesting.NewFakeClock(time.Unix(1000, 0)), defaultLimits())
			read, names := d.read, []string{}
			d.read = func(found *listing) *outcome {
				result := read(found)
				if len(names) < changes {
					name := fmt.Sprintf("c%d", len(names))
					names = append(names, name)
					if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(configMap(name)), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				return result
			}
			err := d.start()
			if changes == attempts {
				if err == nil || !strings.Contains(err.Error(), "keep changing") {
					t.Errorf("got %v, want an error that the manifests keep changing", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := configMaps(t, d.View()), strings.Join(slices.Sorted(slices.Values(names)), " "); got != want {
				t.Errorf("got ConfigMaps %q, want %q", got, want)
			}
		}
	})
}

// sleeper is a clock that something happens to while one sleeps.
type sleeper struct {
	*clocktesting.FakeClock
	times     int
	meanwhile func()
}

func (s *sleeper) Sleep(d time.Duration) {
	s.times++
	s.FakeClock.Sleep(d)
	s.meanwhile()
}
