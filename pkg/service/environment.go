package service

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// variable is one setting of the environment, as the tags of its field tell it:
//
//	env         its name; with ",required" it must be set to something
//	envDefault  what holds where it is not set, or set to nothing
//	allow       what it may be: words separated by |, a range such as 1..100 or 1s..1m,
//	            or one of the forms
//	secret      "true": NAME_FILE may name a file that holds it, and no error shows it
//
// Fields of fields are settings too. A field with the tag required:"false" is a struct
// of which nothing is required.
type variable struct {
	name, fallback, allow string
	required, secret      bool
	kind                  reflect.Type
}

// variablesOf are the settings of config, a struct or a pointer to one.
func variablesOf(config any) []variable {
	kind := reflect.TypeOf(config)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return variablesIn(kind)
}

func variablesIn(kind reflect.Type) (all []variable) {
	for i := range kind.NumField() {
		field := kind.Field(i)
		tag, ok := field.Tag.Lookup("env")
		if !ok && field.Type.Kind() == reflect.Struct {
			inner := variablesIn(field.Type)
			for i := range inner {
				inner[i].required = inner[i].required && field.Tag.Get("required") != "false"
			}
			all = append(all, inner...)
			continue
		}
		if !ok {
			continue
		}
		options := strings.Split(tag, ",")
		all = append(all, variable{
			name: options[0], fallback: field.Tag.Get("envDefault"), allow: field.Tag.Get("allow"),
			required: slices.Contains(options, "required"), secret: field.Tag.Get("secret") == "true", kind: field.Type,
		})
	}
	return all
}

// ReadEnvironment fills config, a pointer to a struct whose fields have the tags that
// the table of variables is made of (env, envDefault, allow, secret), from the
// environment. A variable that holds a secret may be given as NAME_FILE instead, the path
// of a file that holds it; line ends at its end are not part of it.
//
// Where config has a method Check() error, that is asked last. The error is one sentence
// that names every variable that is wrong, and shows no secret.
func ReadEnvironment(config any) error {
	variables := variablesOf(config)
	values, err := environment(variables)
	if err != nil {
		return err
	}
	var wrong []string
	for _, v := range variables {
		value, set := values[v.name]
		switch {
		case value != "":
			if err := v.check(value); err != nil {
				wrong = append(wrong, err.Error())
			}
			values[v.name] = v.plain(value)
		case v.required:
			wrong = append(wrong, v.name+" is not set")
		case !set:
			values[v.name] = "" // required of others, and not here
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	if err := env.ParseWithOptions(config, env.Options{Environment: values}); err != nil {
		return fmt.Errorf("read the environment: %w", err)
	}
	if checked, ok := config.(interface{ Check() error }); ok {
		return checked.Check()
	}
	return nil
}

// environment is what the process was given, with the content of the files that hold
// its secrets.
func environment(variables []variable) (map[string]string, error) {
	values := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	for _, v := range variables {
		path, ok := values[v.name+"_FILE"]
		if !v.secret || !ok {
			continue
		}
		if _, both := values[v.name]; both {
			return nil, fmt.Errorf("set %s or %s_FILE, not both", v.name, v.name)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s_FILE: %w", v.name, err)
		}
		values[v.name] = strings.TrimRight(string(content), "\r\n")
	}
	return values, nil
}
