// A program as controllers are written: shared informers, and an election that one of two candidates wins.
// Wants KUBECONFIG and NAME (a namespace to make). NAME is the only thing that it leaves, deleted.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

const patience = 60 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	if err := run(ctx, os.Getenv("NAME")); err != nil {
		fmt.Fprintln(os.Stderr, "go:", err)
		os.Exit(1)
	}
	fmt.Println("go: informers and election work")
}

func run(ctx context.Context, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	// Built-in kinds are sent as protobuf, as kubectl and most controllers do.
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return err
	}
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"informers", func() error { return inform(ctx, client, namespace) }},
		{"a dynamic informer", func() error { return informOfAnything(ctx, config, namespace) }},
		{"an update after conflicts", func() error { return conflict(ctx, client, namespace) }},
		{"an election", func() error { return elect(ctx, client, namespace) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
}

// Waits until `holds`, with a deadline.
func until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			return errors.New("never: " + what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "go"}},
		Data:       map[string]string{"value": value},
	}
}

func inform(ctx context.Context, client kubernetes.Interface, namespace string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	maps := client.CoreV1().ConfigMaps(namespace)
	for _, name := range []string{"before-1", "before-2"} {
		if _, err := maps.Create(ctx, configMap(name, "0"), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps()
	var added, updated, deleted atomic.Int32
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { added.Add(1) },
		UpdateFunc: func(any, any) { updated.Add(1) },
		DeleteFunc: func(any) { deleted.Add(1) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v never synced", kind)
		}
	}
	listed, err := informer.Lister().ConfigMaps(namespace).List(labels.SelectorFromSet(labels.Set{"of": "go"}))
	if err != nil || len(listed) != 2 {
		return fmt.Errorf("%d listed, %v", len(listed), err)
	}
	// A hundred objects come, change and go; no event may be lost.
	for number := range 100 {
		name := fmt.Sprintf("map-%d", number)
		if _, err := maps.Create(ctx, configMap(name, "1"), metav1.CreateOptions{}); err != nil {
			return err
		}
		patch := []byte(`{"data":{"value":"2"}}`)
		if _, err := maps.Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	err = until(ctx, "102 objects in the cache, all of them changed", func() bool {
		last, err := informer.Lister().ConfigMaps(namespace).Get("map-99")
		return added.Load() == 102 && updated.Load() >= 100 && err == nil && last.Data["value"] == "2"
	})
	if err != nil {
		return fmt.Errorf("%w (%d added, %d updated)", err, added.Load(), updated.Load())
	}
	selected := metav1.ListOptions{LabelSelector: "of=go"}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, selected); err != nil {
		return err
	}
	return until(ctx, "an empty cache", func() bool {
		left, _ := informer.Lister().ConfigMaps(namespace).List(labels.SelectorFromSet(labels.Set{"of": "go"}))
		return deleted.Load() >= 102 && len(left) == 0
	})
}

func informOfAnything(ctx context.Context, config *rest.Config, namespace string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	group := namespace + ".contract.test"
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gizmos." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "gizmos", "kind": "Gizmo"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gizmos"}
	gizmos := client.Resource(resource).Namespace(namespace)
	gizmo := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "g"}, "size": int64(1),
	}}
	err = until(ctx, "the kind is served", func() bool {
		_, err := gizmos.Create(ctx, gizmo, metav1.CreateOptions{})
		return err == nil
	})
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	lister := factory.ForResource(resource).Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if _, err := lister.ByNamespace(namespace).Get("g"); err != nil {
		return err
	}
	if err := gizmos.Delete(ctx, "g", metav1.DeleteOptions{}); err != nil {
		return err
	}
	err = until(ctx, "the object is gone from the cache", func() bool {
		_, err := lister.ByNamespace(namespace).Get("g")
		return apierrors.IsNotFound(err)
	})
	if err != nil {
		return err
	}
	return crds.Delete(ctx, "gizmos."+group, metav1.DeleteOptions{})
}

// Many writers of one object: each sees conflicts, and none loses its write.
func conflict(ctx context.Context, client kubernetes.Interface, namespace string) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Create(ctx, configMap("counter", ""), metav1.CreateOptions{}); err != nil {
		return err
	}
	backoff := retry.DefaultBackoff
	backoff.Steps = 100
	failures := make(chan error)
	for writer := range 8 {
		go func() {
			failures <- retry.RetryOnConflict(backoff, func() error {
				current, err := maps.Get(ctx, "counter", metav1.GetOptions{})
				if err != nil {
					return err
				}
				current.Data[fmt.Sprintf("writer-%d", writer)] = "was here"
				_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
				return err
			})
		}()
	}
	for range 8 {
		if err := <-failures; err != nil {
			return err
		}
	}
	last, err := maps.Get(ctx, "counter", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(last.Data) != 9 {
		return fmt.Errorf("a write was lost: %v", last.Data)
	}
	return nil
}

// Two candidates: one leads, the other follows when it steps down.
func elect(ctx context.Context, client kubernetes.Interface, namespace string) error {
	var leaders atomic.Int32
	candidate := func(ctx context.Context, name string, leads chan<- string) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "election", Namespace: namespace},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 300 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					if leaders.Add(1) > 1 {
						panic("two leaders")
					}
					leads <- name
					<-ctx.Done()
					leaders.Add(-1)
				},
				OnStoppedLeading: func() {},
			},
		})
	}
	leads := make(chan string, 2)
	first, stepDown := context.WithCancel(ctx)
	defer stepDown()
	go candidate(first, "one", leads)
	if err := wait(ctx, leads, "one"); err != nil {
		return err
	}
	second, stop := context.WithCancel(ctx)
	defer stop()
	go candidate(second, "two", leads)
	// The first renews while the second waits: nobody else leads meanwhile.
	select {
	case name := <-leads:
		return fmt.Errorf("%s leads too early", name)
	case <-time.After(2 * time.Second):
	}
	stepDown()
	if err := wait(ctx, leads, "two"); err != nil {
		return err
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "election", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder != "two" {
		return fmt.Errorf("held by %v", holder)
	}
	return nil
}

func wait(ctx context.Context, leads <-chan string, want string) error {
	select {
	case name := <-leads:
		if name != want {
			return fmt.Errorf("%s leads, not %s", name, want)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s never leads", want)
	case <-ctx.Done():
		return ctx.Err()
	}
}
