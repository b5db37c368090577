package live_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/live"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, default: 3}}}}}}}
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, default: 3}}}}}}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

func TestReal(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("REALCONFIG"))
	if err != nil {
		t.Skip(err)
	}
	config.QPS, config.Burst = 200, 400
	dyn := dynamic.NewForConfigOrDie(config)
	kube := kubernetes.NewForConfigOrDie(config)
	c := live.New(live.Options{Dynamic: dyn, Kubernetes: kube, Discovery: discovery.NewDiscoveryClientForConfigOrDie(config), Clock: clock.RealClock{}})
	c.WatchDefinitions(func(g []string) { fmt.Println(time.Now().Format("05.000"), "changed", len(g), g[0]) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	cm := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	c.Use([]schema.GroupVersionKind{widget, cm})
	fmt.Println("before", c.Ready())
	start := time.Now()
	go func() { defer close(done); c.Run(ctx) }()
	for c.Ready() != nil {
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Println("ready after", time.Since(start))
	v := c.View()
	ns, err := v.Namespace(ctx, "default")
	fmt.Println(ns.Labels, ns.Kind, ns.ManagedFields, err)
	_, err = v.Namespace(ctx, "nope")
	fmt.Println(err)
	objs, err := v.Objects(ctx, cluster.Selection{Kind: cm, Selector: labels.Everything()})
	for _, o := range objs {
		fmt.Println(o.GetKind(), o.GetNamespace(), o.GetName(), o.GetManagedFields())
	}
	fmt.Println(err)
	_, err = v.Objects(ctx, cluster.Selection{Kind: widget, Namespace: "default", Selector: labels.Everything()})
	fmt.Println("no crd:", err)
	created := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(crd), &created.Object); err != nil {
		t.Fatal(err)
	}
	crds := dyn.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for round := range 3 {
		if _, err := crds.Create(ctx, created.DeepCopy(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for {
			got, err := crds.Get(ctx, "widgets.example.com", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			cs, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
			ok := false
			for _, one := range cs {
				m := one.(map[string]any)
				ok = ok || m["type"] == "Established" && m["status"] == "True"
			}
			if ok {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		start = time.Now()
		v = c.View()
		m, err := v.Mapper().RESTMapping(widget.GroupKind(), "v1")
		fmt.Println("mapped after", time.Since(start), m, err)
		w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": fmt.Sprint("w", round), "namespace": "default"}, "spec": map[string]any{}}}
		for {
			if _, err = dyn.Resource(widget.GroupVersion().WithResource("widgets")).Namespace("default").Create(ctx, w, metav1.CreateOptions{}); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		start = time.Now()
		objs, err = v.Objects(ctx, cluster.Selection{Kind: widget, Namespace: "default", Name: fmt.Sprint("w", round)})
		fmt.Println("read after", time.Since(start), len(objs), err)
		start = time.Now()
		for {
			objs, err = c.View().Objects(ctx, cluster.Selection{Kind: widget, Namespace: "default", Selector: labels.Everything()})
			if len(objs) > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		fmt.Println("followed after", time.Since(start), objs[0].GetName(), err)
		fmt.Println(c.View().Equivalents(widget.GroupVersion().WithResource("widgets"), ""), c.View().Equivalents(widget.GroupVersion().WithResource("widgets"), "status"))
		start = time.Now()
		for {
			s, err := c.View().Schema(widget)
			if err == nil {
				fmt.Println("schema after", time.Since(start), len(s.Properties), s.Properties["spec"].Properties["size"].Default)
				break
			}
			if time.Since(start) > 20*time.Second {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		st, err := c.View().Stored(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x", "namespace": "default"}, "spec": map[string]any{"junk": int64(1)}}}, widget)
		fmt.Println(st, err)
		ov, err := overlay.New(c.View(), []*unstructured.Unstructured{created.DeepCopy(), {Object: map[string]any{"apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": map[string]any{"name": "x", "namespace": "default"}}}})
		if err != nil {
			t.Fatal(err)
		}
		objs, err = ov.Objects(ctx, cluster.Selection{Kind: widget, Namespace: "default", Selector: labels.Everything(), Limit: 5})
		fmt.Println("overlay", len(objs), err)
		if err := crds.Delete(ctx, "widgets.example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		last := ""
		for time.Since(start) < 3*time.Second {
			objs, err = c.View().Objects(ctx, cluster.Selection{Kind: widget, Namespace: "default", Selector: labels.Everything()})
			if s := fmt.Sprint(len(objs), err); s != last {
				last = s
				fmt.Println("deleted", time.Since(start), s)
			}
			time.Sleep(time.Millisecond)
			if _, err := crds.Get(ctx, "widgets.example.com", metav1.GetOptions{}); err != nil && round == 1 {
				break
			}
		}
	}
	pod, err := c.View().Schema(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	fmt.Println(pod.Properties["spec"].Properties["containers"].Type, err)
	start = time.Now()
	_, err = c.View().Schema(schema.GroupVersionKind{Version: "v1", Kind: "Service"})
	fmt.Println("service", time.Since(start), err)
	start = time.Now()
	d, r, err := c.View().Authorizer().Authorize(ctx, authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "limited"}, Verb: "get", Resource: "pods", APIVersion: "v1", ResourceRequest: true})
	fmt.Println(d, r, err, time.Since(start))
	objs, err = c.View().Objects(ctx, cluster.Selection{Kind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Selector: labels.Everything(), Limit: 7})
	fmt.Println(len(objs), err)
	objs, err = c.View().Objects(ctx, cluster.Selection{Kind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, Selector: labels.Everything()})
	fmt.Println(len(objs), err)
	for _, i := range c.Status().Informers {
		fmt.Printf("%+v\n", i)
	}
	fmt.Printf("%+v\n", c.Status().Discovery)
	cancel()
	<-done
}
