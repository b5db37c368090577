package live_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/live"
)

func sh(c string) {
	cmd := exec.Command("bash", "-c", "cd /tmp/h-live; export KUBECONFIG=/tmp/h-live/kubeconfig; "+c)
	out, err := cmd.CombinedOutput()
	fmt.Println("$", c, string(out), err)
}

func TestLimited(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("REALCONFIG"))
	if err != nil {
		t.Skip(err)
	}
	config.QPS, config.Burst = 200, 400
	config.BearerToken = "limited"
	sh(`kubectl apply -f role.yaml; kubectl create configmap one`)
	c := live.New(live.Options{Dynamic: dynamic.NewForConfigOrDie(config), Kubernetes: kubernetes.NewForConfigOrDie(config), Discovery: discovery.NewDiscoveryClientForConfigOrDie(config), Clock: clock.RealClock{}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	sec := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	cm := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	c.Use([]schema.GroupVersionKind{sec, cm})
	start := time.Now()
	go func() { defer close(done); c.Run(ctx) }()
	for c.Ready() != nil {
		time.Sleep(5 * time.Millisecond)
		if time.Since(start) > 5*time.Second {
			t.Fatal(c.Ready())
		}
	}
	fmt.Println("ready after", time.Since(start))
	ask := func(kind schema.GroupVersionKind) string {
		objs, err := c.View().Objects(ctx, cluster.Selection{Kind: kind, Namespace: "default", Selector: labels.Everything()})
		return fmt.Sprint(len(objs), err)
	}
	fmt.Println(ask(sec), "|", ask(cm))
	_, err = c.View().Objects(ctx, cluster.Selection{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "default", Name: "x"})
	fmt.Println(err)
	d, r, err := c.View().Authorizer().Authorize(ctx, authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "limited"}, Verb: "list", Resource: "namespaces", APIVersion: "v1", ResourceRequest: true})
	fmt.Println(d, r, err)
	_, err = c.View().Schema(cm)
	fmt.Println("schema", err)
	sh(`kubectl create clusterrole secrets --verb=get,list,watch --resource=secrets; kubectl create clusterrolebinding secrets --user=limited --clusterrole=secrets`)
	start = time.Now()
	last := ""
	for time.Since(start) < 8*time.Second {
		if s := ask(sec); s != last {
			last = s
			fmt.Println(time.Since(start), s)
		}
		time.Sleep(10 * time.Millisecond)
	}
	sh(`kill -9 $(cat apiserver.pid)`)
	last = ""
	start = time.Now()
	for time.Since(start) < 4*time.Second {
		_, err := c.View().Namespace(ctx, "nope")
		if s := ask(cm) + fmt.Sprint(err, c.Status().Discovery.Err); s != last {
			last = s
			fmt.Println(time.Since(start), s)
		}
		time.Sleep(10 * time.Millisecond)
	}
	sh(`(grep kube-apiserver start.sh | grep nice | sed 's/^nice //;s/ & echo.*//' > again.sh); setsid bash again.sh >/dev/null 2>&1 & echo started`)
	sh(`for i in $(seq 300); do kubectl create configmap two --request-timeout=1s && break; sleep 0.1; done 2>&1 | tail -1`)
	start = time.Now()
	for ask(cm) != "2 <nil>" && time.Since(start) < 30*time.Second {
		if s := ask(cm); s != last {
			last = s
			fmt.Println(time.Since(start), s)
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("recovered after", time.Since(start), ask(cm), ask(sec))
	for _, i := range c.Status().Informers {
		fmt.Printf("%+v\n", i)
	}
	cancel()
	<-done
}
