package main

import (
	"fmt"
	"slices"
	"strings"
)

const preface = `# Configuration

Every variable that a program of Partilha reads. ` + "`make generate`" + ` writes this page from the code; do not edit it.

A variable that is set to nothing has its default. A value that is not allowed ends the program at its start, with one sentence that names the variable. What is secret may be given
as a file: the variable with ` + "`_FILE`" + ` behind its name is the path of a file that holds it. A variable that nothing reads but that seems to be meant for the program, such as ` + "`RATE_LIMT`" + ` or any
that begins with ` + "`PARTILHA_`" + `, is warned of in the log. ` + "`make run`" + ` makes the secrets that it is not given once and keeps them in its data folder. Durations are written like ` + "`5s`" + ` or ` + "`1m30s`" + `, networks like ` + "`10.0.0.0/8,fd00::/8`" + `. What else may be set where Docker runs it all stands in the README.

| variable | read by | default | may be | what it is |
|---|---|---|---|---|
`

// render is the page. Programs that read a variable alike share its row.
func render(all []variable) string {
	var page strings.Builder
	page.WriteString(preface)
	var shown []variable
	for _, v := range all {
		v.program = ""
		if slices.Contains(shown, v) {
			continue
		}
		shown = append(shown, v)
		name := "`" + v.name + "`"
		if v.secret {
			name += " or `" + v.name + "_FILE`"
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %s |\n", name, readers(all, v), fallback(v), allowed(v.allow), strings.ReplaceAll(v.about, "|", `\|`))
	}
	return page.String()
}

// readers names the programs that read a variable just so.
func readers(all []variable, like variable) string {
	var names []string
	for _, v := range all {
		name := v.program
		v.program = ""
		if v == like {
			names = append(names, name)
		}
	}
	if every := []string{"sales", "commissions", "goals", "webhooks"}; len(names) >= len(every) && slices.Equal(names[:len(every)], every) {
		names = slices.Replace(names, 0, len(every), "every service")
	}
	return strings.Join(names, ", ")
}

func fallback(v variable) string {
	switch {
	case v.required:
		return "none: it must be set"
	case v.fallback == "":
		return "nothing"
	default:
		return "`" + v.fallback + "`"
	}
}

// allowed is the tag in words.
func allowed(tag string) string {
	if least, most, ok := strings.Cut(tag, ".."); ok {
		return "`" + least + "` to `" + most + "`"
	}
	if words := strings.Split(tag, "|"); len(words) > 1 {
		return "`" + strings.Join(words, "`, `") + "`"
	}
	return tag
}
