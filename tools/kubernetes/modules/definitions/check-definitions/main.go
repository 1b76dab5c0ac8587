// Validates CustomResourceDefinitions, one per file, as an API server of this module's version does: with its checks, its
// CEL and its cost budget for rules, but without a server.
package main

import (
	"context"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

func main() {
	refused := len(os.Args) < 2 // nothing was checked
	for _, file := range os.Args[1:] {
		faults, err := check(file)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
		}
		for _, fault := range faults {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, fault)
		}
		refused = refused || err != nil || len(faults) > 0
	}
	if refused {
		os.Exit(1)
	}
}

func check(file string) (field.ErrorList, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var given v1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &given); err != nil {
		return nil, err
	}
	v1.SetDefaults_CustomResourceDefinition(&given)
	v1.SetDefaults_CustomResourceDefinitionSpec(&given.Spec)
	for _, version := range given.Spec.Versions {
		if version.Storage { // the server writes this when it stores the definition
			given.Status.StoredVersions = []string{version.Name}
		}
	}
	var definition apiextensions.CustomResourceDefinition
	err = v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&given, &definition, nil)
	if err != nil {
		return nil, err
	}
	return validation.ValidateCustomResourceDefinition(context.Background(), &definition), nil
}
