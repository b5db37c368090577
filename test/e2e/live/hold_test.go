//go:build e2e

package live

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestHold(t *testing.T) {
	file := os.Getenv("HOLD")
	if file == "" {
		t.Skip()
	}
	os.WriteFile(file, []byte(fmt.Sprintf("export KUBECONFIG=%s\nAUDIT=%s\nHOST=%s\n", shared.AdminKubeconfig, shared.AuditLog, shared.Host)), 0o644)
	for _, r := range shared.Replicas {
		fmt.Println(r.Identity, r.Address, r.LogFile())
	}
	for {
		if _, err := os.Stat(file); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}
