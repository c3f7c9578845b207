package contract

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A body is kept as a tree that can also be wrong: an object may have a member twice,
// and a token may be anything.
type (
	object []member
	member struct {
		name  string // as a JSON token, quotes included
		value any    // object, []any, or token
	}
	token string // written as it is
)

// treeOf is the tree of a value that encoding/json has read with UseNumber.
func treeOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		members := object{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			members = append(members, member{quoted(name), treeOf(value[name])})
		}
		return members
	case []any:
		items := []any{}
		for _, item := range value {
			items = append(items, treeOf(item))
		}
		return items
	case json.Number:
		return token(value)
	default:
		raw, err := json.Marshal(value)
		if err != nil {
			panic(err) // nothing else is left than null, booleans and texts
		}
		return token(raw)
	}
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text can always be written
	}
	return string(raw)
}

// text is a string as a token.
func text(s string) token { return token(quoted(s)) }

// written is the body that is sent.
func written(tree any) string {
	var b strings.Builder
	write(&b, tree)
	return b.String()
}

func write(b *strings.Builder, tree any) {
	switch tree := tree.(type) {
	case object:
		b.WriteByte('{')
		for i, m := range tree {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(m.name + ":")
			write(b, m.value)
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range tree {
			if i > 0 {
				b.WriteByte(',')
			}
			write(b, item)
		}
		b.WriteByte(']')
	case token:
		b.WriteString(string(tree))
	}
}

// index is where the object has the member, or -1.
func (o object) index(name string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.name == quoted(name) })
}

// at is the value at the path, or nil.
func at(tree any, path []string) any {
	for _, name := range path {
		switch inner := tree.(type) {
		case object:
			i := inner.index(name)
			if i < 0 {
				return nil
			}
			tree = inner[i].value
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(inner) {
				return nil
			}
			tree = inner[i]
		default:
			return nil
		}
	}
	return tree
}

// with is a copy of the tree that has the value at the path. Of the path only the last
// name may be missing in the tree, and only in an object.
func with(tree any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch tree := tree.(type) {
	case object:
		changed := slices.Clone(tree)
		if i := tree.index(path[0]); i >= 0 {
			changed[i].value = with(tree[i].value, path[1:], value)
			return changed
		}
		return append(changed, member{quoted(path[0]), value})
	case []any:
		changed := slices.Clone(tree)
		i, _ := strconv.Atoi(path[0]) // at has found the item by this number
		changed[i] = with(tree[i], path[1:], value)
		return changed
	default:
		return tree
	}
}

// inside is a copy of the tree in which the object at the path is changed.
func inside(tree any, path []string, change func(object) object) any {
	return with(tree, path, change(slices.Clone(at(tree, path).(object))))
}
