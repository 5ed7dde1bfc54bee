// The four programs of a control plane in one binary: they share most of their code, so one link
// step and one file are a quarter of the cost.
package main

import (
	"fmt"
	"os"
	"slices"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	programs := map[string]func() int{
		"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
		"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
		"kube-controller-manager": func() int { return cli.Run(manager.NewControllerManagerCommand()) },
		"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	}
	if len(os.Args) > 1 {
		if run, known := programs[os.Args[1]]; known {
			os.Args = slices.Delete(os.Args, 0, 1)
			os.Exit(run())
		}
	}
	fmt.Fprintln(os.Stderr, "usage: control-plane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flags]")
	os.Exit(2)
}
