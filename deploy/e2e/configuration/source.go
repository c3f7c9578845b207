package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// program is what reads variables: its name for people, and the structs that it gives to
// service.ReadEnvironment, each as FOLDER.TYPE.
type program struct {
	name    string
	structs []string
}

const ofEveryService = "pkg/service.Config"

// programs are all programs that people configure.
var programs = []program{
	{"sales", []string{ofEveryService, "services/sales.Config"}},
	{"commissions", []string{ofEveryService, "services/commissions.Config"}},
	{"goals", []string{ofEveryService, "services/goals.Config"}},
	{"webhooks", []string{ofEveryService, "services/webhooks.Config"}},
	{"front", []string{"deploy/local/cmd/front.config"}},
	{"make run", []string{"deploy/local.config"}},
	{"make demo-compose", []string{"deploy/local/cmd/demo.config"}},
}

// variable is one variable of one program.
type variable struct {
	program, name, fallback, allow, about string
	required, secret                      bool
}

// source is the structs of the project's Go files, by FOLDER.TYPE.
type source map[string]structure

type structure struct {
	folder  string
	imports map[string]string // folders of the project, by the name that the file has for them
	fields  []*ast.Field
}

// read returns the variables of every program below root, in the order of their fields.
func read(root string) (all []variable, err error) {
	structs, err := parse(root)
	if err != nil {
		return nil, err
	}
	for _, p := range programs {
		for _, name := range p.structs {
			variables, err := structs.variables(name)
			if err != nil {
				return nil, fmt.Errorf("read %s of %s: %w", name, p.name, err)
			}
			for _, v := range variables {
				v.program = p.name
				all = append(all, v)
			}
		}
	}
	return all, nil
}

// parse reads the Go files that programs are made of, and no tests.
func parse(root string) (source, error) {
	structs := source{}
	for _, part := range []string{"pkg", "services", "deploy/local"} {
		err := filepath.WalkDir(filepath.Join(root, part), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			structs.add(folder, file)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the source: %w", err)
		}
	}
	return structs, nil
}

func (s source) add(folder string, file *ast.File) {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value) // the parser has accepted it
		if inside, ok := strings.CutPrefix(path, "partilha.dev/"); ok {
			imports[filepath.Base(inside)] = inside
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		declared, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if made, ok := declared.Type.(*ast.StructType); ok {
			s[folder+"."+declared.Name.Name] = structure{folder, imports, made.Fields.List}
		}
		return true
	})
}

// variables are those of a struct and of the structs that are its fields.
func (s source) variables(name string) (all []variable, err error) {
	from, ok := s[name]
	if !ok {
		return nil, errors.New("there is no such struct")
	}
	for _, field := range from.fields {
		tag := tagOf(field)
		if own, ok := tag.Lookup("env"); ok {
			options := strings.Split(own, ",")
			all = append(all, variable{
				name: options[0], fallback: tag.Get("envDefault"), allow: tag.Get("allow"), about: strings.TrimSpace(field.Comment.Text()),
				required: slices.Contains(options, "required"), secret: tag.Get("secret") == "true",
			})
			continue
		}
		inner, ok := from.named(field.Type)
		if _, known := s[inner]; !ok || !known {
			continue
		}
		variables, err := s.variables(inner)
		if err != nil {
			return nil, err
		}
		for _, v := range variables {
			v.required = v.required && tag.Get("required") != "false"
			all = append(all, v)
		}
	}
	return all, nil
}

// named is the FOLDER.TYPE of a type that the project declares.
func (s structure) named(kind ast.Expr) (string, bool) {
	switch kind := kind.(type) {
	case *ast.Ident:
		return s.folder + "." + kind.Name, true
	case *ast.SelectorExpr:
		if from, ok := kind.X.(*ast.Ident); ok && s.imports[from.Name] != "" {
			return s.imports[from.Name] + "." + kind.Sel.Name, true
		}
	}
	return "", false
}

func tagOf(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	text, _ := strconv.Unquote(field.Tag.Value) // the parser has accepted it
	return reflect.StructTag(text)
}
