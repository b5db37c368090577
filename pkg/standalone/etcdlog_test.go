// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"go.uber.org/zap"
)

// recordingLog logs at -v=0 into lines.
func recordingLog(lines *[]string) *etcdLog {
	return newEtcdLog(funcr.New(func(prefix, args string) { *lines = append(*lines, prefix+" "+args) }, funcr.Options{}))
}

func TestEtcdLogLevels(t *testing.T) {
	var lines []string
	log := recordingLog(&lines)
	logger := log.zap().With(zap.String("member", "only"))

	logger.Debug("debug")
	logger.Info("info")
	logger.Warn("warning")
	logger.Error(storageVersionMessage)
	if len(lines) != 0 {
		t.Errorf("logged without being asked to: %q", lines)
	}
	logger.Error("disk is slow", zap.Error(errors.New("took 2s")))
	want := `etcd "msg"="disk is slow" "error"="took 2s" "member"="only"`
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("an error: logged %q, want %q", lines, want)
	}

	log.closing.Store(true)
	logger.Error("use of closed network connection")
	if len(lines) != 1 {
		t.Errorf("logged errors of closing: %q", lines[1:])
	}
}

func TestEtcdLogTurnsFatalEntriesIntoErrors(t *testing.T) {
	tests := map[string]func(*zap.Logger){
		"panic": func(l *zap.Logger) { l.Panic("cannot save", zap.Error(errors.New("no space left"))) },
		"fatal": func(l *zap.Logger) { l.Fatal("cannot save", zap.Error(errors.New("no space left"))) },
	}
	for name, act := range tests {
		t.Run(name, func(t *testing.T) {
			log := newEtcdLog(logr.Discard())
			wentOn := make(chan bool, 1)
			go func() {
				result := false
				defer func() { wentOn <- result }()
				act(log.zap())
				result = true
			}()
			if <-wentOn {
				t.Error("went on after the entry")
			}
			if err := <-log.fatal; err.Error() != "cannot save: no space left" {
				t.Errorf("got error %q", err)
			}
			if !log.failed.Load() {
				t.Error("the failure is not remembered")
			}
		})
	}
}
