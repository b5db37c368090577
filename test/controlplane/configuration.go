// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	webhookadmissionv1 "k8s.io/apiserver/pkg/admission/plugin/webhook/config/apis/webhookadmission/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeAuditPolicy logs each request once, when it has been answered, but for what the
// control plane does by itself all the time.
func (c *ControlPlane) writeAuditPolicy() (file string, err error) {
	read := []string{"get", "list", "watch"}
	policy := &auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived, auditv1.StageResponseStarted},
		Rules: []auditv1.PolicyRule{
			{Level: auditv1.LevelNone, Users: []string{"system:apiserver", controllerManagerUser}, Verbs: read},
			{Level: auditv1.LevelNone, UserGroups: []string{"system:serviceaccounts:kube-system"}, Verbs: read},
			{Level: auditv1.LevelNone, NonResourceURLs: []string{"/healthz*", "/livez*", "/readyz*"}},
			{Level: auditv1.LevelNone, Resources: []auditv1.GroupResources{
				{Group: "coordination.k8s.io", Resources: []string{"leases"}},
				{Group: "events.k8s.io", Resources: []string{"events"}},
				{Resources: []string{"events"}},
			}},
			{Level: cmp.Or(c.options.AuditLevel, auditv1.LevelMetadata)},
		},
	}
	return c.writeJSON("audit-policy.json", policy)
}

// writeAdmissionConfiguration says as whom webhooks are called.
func (c *ControlPlane) writeAdmissionConfiguration() (file string, err error) {
	users := clientcmdapi.NewConfig()
	for _, host := range slices.Sorted(maps.Keys(c.options.WebhookUsers)) {
		p, err := c.credentials.cluster.client(c.options.WebhookUsers[host])
		if err != nil {
			return "", err
		}
		users.AuthInfos[host] = &clientcmdapi.AuthInfo{ClientCertificateData: p.cert, ClientKeyData: p.key}
	}
	kubeconfig := filepath.Join(c.options.Dir, "webhooks.kubeconfig")
	if err := clientcmd.WriteToFile(*users, kubeconfig); err != nil {
		return "", err
	}
	webhooks, err := json.Marshal(&webhookadmissionv1.WebhookAdmission{
		TypeMeta:       metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "WebhookAdmissionConfiguration"},
		KubeConfigFile: kubeconfig,
	})
	if err != nil {
		return "", err
	}
	configuration := &apiserverv1.AdmissionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "AdmissionConfiguration"},
	}
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		configuration.Plugins = append(configuration.Plugins, apiserverv1.AdmissionPluginConfiguration{
			Name: plugin, Configuration: &runtime.Unknown{Raw: webhooks, ContentType: runtime.ContentTypeJSON},
		})
	}
	return c.writeJSON("admission.json", configuration)
}

func (c *ControlPlane) writeJSON(name string, object any) (file string, err error) {
	content, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	file = filepath.Join(c.options.Dir, name)
	return file, os.WriteFile(file, content, 0o600)
}
