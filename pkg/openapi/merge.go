package openapi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Merge makes one document of several, for a port that serves them all.
//
// It holds every path, webhook, tag and component once. What two documents both have,
// an operation say or a component of the same name, must be the same in both, or Merge
// fails with everything that differs. The result has the given title, the first
// document's version, all their descriptions, and no servers: it describes the host that
// it was read from.
func Merge(title string, docs ...*Document) (*Document, error) {
	var found problems
	merged := object(member{"openapi", text("3.1.0")}, member{"info", mergeInfo(title, docs)})
	tags := &node{kind: '['}
	sections := object()
	for _, d := range docs {
		tree := withOwnSecurity(d.tree)
		mergeTags(&found, tags, tree.list("tags"))
		for _, name := range []string{"paths", "webhooks", "components"} {
			if section := tree.get(name); section != nil {
				mergeAt(&found, "", sections, name, section, 2)
			}
		}
	}
	if err := found.err(); err != nil {
		return nil, fmt.Errorf("merge OpenAPI documents: %w", err)
	}
	if len(tags.items) > 0 {
		merged.set("tags", tags)
	}
	for _, section := range sections.members {
		merged.set(section.name, section.value)
	}
	d, err := newDocument(merged)
	if err != nil {
		return nil, fmt.Errorf("merge OpenAPI documents: %w", err)
	}
	return d, nil
}

// mergeAt adds value to target under a name; at is the pointer of target. Objects are
// united down to that many levels; deeper, what is there twice must be the same.
func mergeAt(found *problems, at string, target *node, name string, value *node, levels int) {
	at = pointer(at, name)
	present := target.get(name)
	switch {
	case present == nil:
		target.set(name, value.copied(levels))
	case levels > 0 && present.kind == '{' && value.kind == '{':
		for _, m := range value.members {
			mergeAt(found, at, present, m.name, m.value, levels-1)
		}
	case !present.equal(value):
		found.add(at, "differs between the documents")
	}
}

// copied returns a copy whose first levels can be changed without touching n.
func (n *node) copied(levels int) *node {
	clone := *n
	clone.members = slices.Clone(n.members)
	if levels > 0 {
		for i := range clone.members {
			clone.members[i].value = clone.members[i].value.copied(levels - 1)
		}
	}
	return &clone
}

func mergeTags(found *problems, tags *node, more []*node) {
	for _, tag := range more {
		same := func(t *node) bool { return t.str("name") == tag.str("name") }
		switch i := slices.IndexFunc(tags.items, same); {
		case i < 0:
			tags.items = append(tags.items, tag)
		case !tags.items[i].equal(tag):
			found.add("/tags", "the tag %q differs between the documents", tag.str("name"))
		}
	}
}

func mergeInfo(title string, docs []*Document) *node {
	info := object(member{"title", text(title)})
	if description := mergeDescriptions(docs); description != "" {
		info.set("description", text(description))
	}
	if len(docs) > 0 {
		info.set("version", docs[0].tree.get("info", "version"))
	}
	return info
}

// mergeDescriptions puts the descriptions one after the other, and what all of them say
// once, at the end.
func mergeDescriptions(docs []*Document) string {
	said := map[string]int{} // in how many documents a paragraph stands
	var paragraphs []string
	for _, d := range docs {
		for paragraph := range strings.SplitSeq(strings.TrimSpace(d.tree.str("info", "description")), "\n\n") {
			if said[paragraph]++; said[paragraph] == 1 {
				paragraphs = append(paragraphs, paragraph)
			}
		}
	}
	slices.SortStableFunc(paragraphs, func(a, b string) int {
		return cmp.Compare(said[a]/len(docs), said[b]/len(docs)) // 0: not in all of them; 1: in all
	})
	return strings.TrimSpace(strings.Join(paragraphs, "\n\n"))
}

// withOwnSecurity returns the document with its general security requirement written
// into each operation that has none of its own, since a merged document has no general one.
func withOwnSecurity(tree *node) *node {
	security := tree.get("security")
	if security == nil {
		return tree
	}
	tree = tree.copied(3)
	for _, path := range tree.each("paths") {
		for _, method := range methods {
			if op := path.value.get(method); op != nil && op.get("security") == nil {
				op.set("security", security)
			}
		}
	}
	return tree
}
