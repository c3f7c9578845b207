// Package kubernetes holds the Helm chart in partilha to what it promises. Its tests
// render the chart with Helm's own library and read every document into the types of
// Kubernetes' API.
//
// It is a module of its own, outside the workspace: Helm's dependencies would choose the
// versions of everybody else's.
package kubernetes
