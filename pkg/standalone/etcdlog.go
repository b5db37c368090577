// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// The -v from which etcd's warnings, and its account of its ordinary work, are logged.
const (
	etcdWarningVerbosity = 2
	etcdVerbosity        = 4
)

// storageVersionMessage is logged as an error on the first start of every etcd:
// it looks for what it commits a moment later, and then tries again.
const storageVersionMessage = "failed to update storage version"

// etcdLog puts etcd's log into the log of this process, in its format. Errors are
// always logged, warnings from -v=2 and the rest from -v=4: a warning of an etcd
// with one member is mostly advice to run several.
//
// It also turns what etcd does about a fault it cannot go on with, which is to
// panic or to end the process from inside the logger, into an error.
type etcdLog struct {
	logger klog.Logger
	// fatal gets the first fault that etcd could not go on with.
	fatal chan error
	// failed is set once such a fault was met. Parts of etcd have stopped then.
	failed atomic.Bool
	// closing is set when etcd is asked to stop: it logs as errors that its own
	// listeners are closed.
	closing atomic.Bool
}

func newEtcdLog(logger klog.Logger) *etcdLog {
	return &etcdLog{logger: logger.WithName("etcd"), fatal: make(chan error, 1)}
}

func (l *etcdLog) zap() *zap.Logger {
	return zap.New(logCore{log: l}, zap.WithPanicHook(l), zap.WithFatalHook(l))
}

// OnWrite implements zapcore.CheckWriteHook for entries after which etcd must not
// go on. It ends the goroutine that met the fault, and what etcd was doing there
// stays undone: a write is then never acknowledged.
func (l *etcdLog) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := errors.New(entry.Message)
	if _, reason := splitError(fields); reason != nil {
		err = fmt.Errorf("%s: %w", entry.Message, reason)
	}
	if !l.failed.Swap(true) {
		l.fatal <- err
	}
	runtime.Goexit()
}

// logCore is a zap core that writes to an etcdLog.
type logCore struct {
	log    *etcdLog
	fields []zapcore.Field
}

// Enabled implements zapcore.LevelEnabler.
func (c logCore) Enabled(level zapcore.Level) bool {
	switch {
	case level > zapcore.ErrorLevel:
		return false // reported as an error by the hook
	case level == zapcore.ErrorLevel && !c.log.closing.Load():
		return true
	case level >= zapcore.InfoLevel:
		return c.log.logger.V(verbosity(level)).Enabled()
	default:
		return false
	}
}

func verbosity(level zapcore.Level) int {
	if level == zapcore.WarnLevel {
		return etcdWarningVerbosity
	}
	return etcdVerbosity
}

// With implements zapcore.Core.
func (c logCore) With(fields []zapcore.Field) zapcore.Core {
	c.fields = append(c.fields[:len(c.fields):len(c.fields)], fields...)
	return c
}

// Check implements zapcore.Core.
func (c logCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Message == storageVersionMessage {
		entry.Level = zapcore.WarnLevel
	}
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

// Write implements zapcore.Core.
func (c logCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	others, reason := splitError(append(c.fields[:len(c.fields):len(c.fields)], fields...))
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range others {
		field.AddTo(encoder)
	}
	keysAndValues := make([]any, 0, 2*len(encoder.Fields))
	for _, key := range slices.Sorted(maps.Keys(encoder.Fields)) {
		keysAndValues = append(keysAndValues, key, encoder.Fields[key])
	}
	if entry.Level == zapcore.ErrorLevel && !c.log.closing.Load() {
		c.log.logger.Error(reason, entry.Message, keysAndValues...)
		return nil
	}
	if reason != nil {
		keysAndValues = append(keysAndValues, "err", reason)
	}
	c.log.logger.V(verbosity(entry.Level)).Info(entry.Message, keysAndValues...)
	return nil
}

// Sync implements zapcore.Core. The log of the process is flushed by its owner.
func (c logCore) Sync() error { return nil }

// splitError returns the fields without the error, and the error if there is one.
func splitError(fields []zapcore.Field) (others []zapcore.Field, reason error) {
	for i, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			return slices.Concat(fields[:i], fields[i+1:]), err
		}
	}
	return fields, nil
}
