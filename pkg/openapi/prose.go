package openapi

import (
	"strings"
)

// A block is one heading, paragraph, list or verbatim text of a description.
type block struct {
	Verbatim string   // text between ``` fences, or
	Heading  []span   // a heading, or
	Items    [][]span // a list, or
	Spans    []span   // a paragraph
}

// A span is a run of text in one style.
type span struct {
	Text         string
	Code, Strong bool
}

// prose reads the part of Markdown that descriptions are written in: ## headings,
// paragraphs, lists with - or *, ``` fences, `code` and **emphasis**. Anything else stays text as it is.
func prose(markdown string) []block {
	var blocks []block
	for len(markdown) > 0 {
		var part string
		if fenced, rest, ok := fence(markdown); ok {
			blocks = append(blocks, block{Verbatim: fenced})
			markdown = rest
			continue
		}
		part, markdown, _ = strings.Cut(markdown, "\n\n")
		if part = strings.Trim(part, "\n"); part == "" {
			continue
		}
		if heading, ok := strings.CutPrefix(part, "## "); ok && !strings.Contains(part, "\n") {
			blocks = append(blocks, block{Heading: spans(heading)})
		} else if items := listItems(part); items != nil {
			blocks = append(blocks, block{Items: items})
		} else {
			blocks = append(blocks, block{Spans: spans(part)})
		}
	}
	return blocks
}

// fence cuts a verbatim text off the front of markdown.
func fence(markdown string) (verbatim, rest string, ok bool) {
	opened, found := strings.CutPrefix(strings.TrimLeft(markdown, "\n"), "```")
	if !found {
		return "", "", false
	}
	_, body, _ := strings.Cut(opened, "\n")
	verbatim, rest, ok = strings.Cut(body, "```")
	return strings.TrimRight(verbatim, "\n"), strings.TrimLeft(rest, "\n"), ok
}

// listItems returns the items of a part that is a list, or nil. Lines without a mark
// continue the item above them.
func listItems(part string) [][]span {
	var items []string
	for line := range strings.SplitSeq(part, "\n") {
		trimmed := strings.TrimSpace(line)
		switch item, marked := cutMark(trimmed); {
		case marked:
			items = append(items, item)
		case len(items) == 0:
			return nil
		default:
			items[len(items)-1] += " " + trimmed
		}
	}
	var all [][]span
	for _, item := range items {
		all = append(all, spans(item))
	}
	return all
}

func cutMark(line string) (string, bool) {
	if item, ok := strings.CutPrefix(line, "- "); ok {
		return item, true
	}
	return strings.CutPrefix(line, "* ")
}

// spans splits text at its `code` and **emphasis**. A mark that is not closed is text.
func spans(s string) []span {
	var all []span
	plain := func(s string) {
		if s != "" {
			all = append(all, span{Text: s})
		}
	}
	for {
		i := strings.IndexAny(s, "`*")
		if i < 0 {
			plain(s)
			return all
		}
		mark := "`"
		if strings.HasPrefix(s[i:], "**") {
			mark = "**"
		}
		inner, rest, closed := strings.Cut(s[min(i+len(mark), len(s)):], mark)
		if !strings.HasPrefix(s[i:], mark) || !closed || inner == "" {
			plain(s[:i+1])
			s = s[i+1:]
			continue
		}
		plain(s[:i])
		all = append(all, span{Text: inner, Code: mark == "`", Strong: mark == "**"})
		s = rest
	}
}
