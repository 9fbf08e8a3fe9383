package ahp

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestContentPart(t *testing.T) {
	const text = `{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"hello"}`
	const attachment = `{"id":"p","kind":"attachment","mediaType":"image/png","selection":"body","body":{"ref":"r"}}`
	for _, good := range []string{
		text, attachment,
		`{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":""}`,
		`{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","gap":{"reason":"r"},"size":3,"sha256":"` + strings.Repeat("0f", 32) + `"}`,
		`{"id":"p","kind":"text","mediaType":"text/plain","selection":"metadata","category":"reasoning","size":3,"synthesized":true}`,
		`{"id":"p","kind":"attachment","mediaType":"application/pdf","selection":"omit"}`,
		`{"id":"p","kind":"attachment","mediaType":"application/jsonish","selection":"omit"}`,
	} {
		if why, ok := fits(contentPart, mustTree(good)); !ok {
			t.Errorf("contentPart(%s): %s; want it to fit", good, why)
		}
	}
	for _, bad := range []string{
		`1`, `[]`, `{}`, strings.Replace(text, `"p"`, `""`, 1), strings.Replace(text, `"body"`, `"all"`, 1),
		strings.Replace(text, `text/plain`, `text/html`, 1), strings.Replace(text, `"kind":"text"`, `"kind":"note"`, 1),
		strings.Replace(text, `"text":"hello"`, `"text":1`, 1), strings.Replace(text, `,"text":"hello"`, ``, 1),
		strings.Replace(text, `"body"`, `"metadata"`, 1), strings.Replace(text, `"body"`, `"omit"`, 1),
		strings.Replace(text, `}`, `,"gap":{"reason":"r"}}`, 1), strings.Replace(text, `}`, `,"extra":1}`, 1),
		strings.Replace(text, `}`, `,"size":1}`, 1), strings.Replace(text, `}`, `,"category":""}`, 1), strings.Replace(text, `}`, `,"body":{}}`, 1),
		strings.Replace(attachment, `image/png`, `text/csv`, 1), strings.Replace(attachment, `image/png`, `Application/JSON; a=b`, 1),
		strings.Replace(attachment, `image/png`, `application/ld+json`, 1), strings.Replace(attachment, `image/png`, ``, 1),
		strings.Replace(attachment, `}}`, `},"text":"x"}`, 1), strings.Replace(attachment, `{"ref":"r"}`, `"r"`, 1),
	} {
		if _, ok := fits(contentPart, mustTree(bad)); ok {
			t.Errorf("contentPart(%s) fits; want not", bad)
		}
	}
}

// reference is content selection over decoded JSON: slow, and written the way
// the protocol tells it.
func reference(v any, path []string, c ContentSelection) {
	if len(path) == 0 {
		part := v.(map[string]any)
		category, _ := part["category"].(string)
		media := part["mediaType"].(string)
		if category == "" {
			category = "files"
			for prefix, name := range map[string]string{"image/": "images", "audio/": "audio", "video/": "video"} {
				if strings.HasPrefix(media, prefix) {
					category = name
				}
			}
			if part["kind"] == "text" {
				category = "text"
			}
		}
		rank := map[string]int{"omit": 0, "metadata": 1, "body": 2}
		selected := c.Of(category).String()
		if own := part["selection"].(string); rank[own] < rank[selected] {
			selected = own
		}
		if selected != "body" {
			delete(part, "text")
			delete(part, "body")
			delete(part, "gap")
			part["selection"] = selected
		}
		return
	}
	switch node := v.(type) {
	case []any:
		for _, e := range node {
			reference(e, path[1:], c)
		}
	case map[string]any:
		if child, ok := node[path[0]]; ok {
			reference(child, path[1:], c)
		}
	}
}

// TestProject compares what a subscription is shown of random events, whatever
// the event and the selection, with the reference, and everything around the
// content byte for byte.
func TestProject(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 7))
	selections := []Selection{SelectBody, SelectMetadata, SelectOmit}
	categories := []string{"text", "reasoning", "images", "audio", "video", "files", "skills"}
	part := func() string {
		category := ""
		if r.IntN(2) == 0 {
			category = `, "category":"` + categories[r.IntN(len(categories))] + `"`
		}
		switch r.IntN(5) {
		case 0:
			return `{ "text":"se\u0063ret", "selection" : "body","id":"p","mediaType":"text/plain","kind":"text"` + category + `}`
		case 1:
			return `{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","gap":{"reason":"secret"},"size":12345678901234567890` + category + `}`
		case 2:
			return `{"id":"p","kind":"attachment","mediaType":"` + []string{"image/png", "audio/ogg", "video/mp4", "application/pdf"}[r.IntN(4)] +
				`","selection":"body","body":{"ref":"secret"}` + category + `}`
		case 3:
			return `{"id":"p","kind":"text","mediaType":"text/plain","selection":"metadata"` + category + `}`
		default:
			return `{"selection":"omit","id":"p","kind":"attachment","mediaType":"image/png"` + category + `}`
		}
	}
	// build renders a value that has parts at the paths.
	var build func(paths [][]string) string
	build = func(paths [][]string) string {
		if len(paths) == 1 && len(paths[0]) == 0 {
			return part()
		}
		if paths[0][0] == "*" {
			var elements []string
			for range r.IntN(3) {
				var rest [][]string
				for _, p := range paths {
					rest = append(rest, p[1:])
				}
				elements = append(elements, build(rest))
			}
			return "[" + strings.Join(elements, " ,") + "]"
		}
		heads := map[string][][]string{}
		for _, p := range paths {
			heads[p[0]] = append(heads[p[0]], p[1:])
		}
		members := []string{`"native":{"text":"kept or cut"}`, `"other":{"selection":"body","text":"not a part"}`}
		for _, head := range slices.Sorted(maps.Keys(heads)) {
			members = append(members, `"`+head+`": `+build(heads[head]))
		}
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return "{" + strings.Join(members, ", ") + "}"
	}
	reduced := 0
	for i := range 20_000 {
		e := SessionStart + EventType(r.IntN(int(EventTypeCount-SessionStart)))
		if !e.Observable(Draft) {
			continue
		}
		raw := build(contentPaths[e])
		body := []byte(`{"params": {"event":` + raw + `,"protocolVersion":"draft"}}`)
		var s scanner
		s.reset(body)
		if !s.scan(nodeRoot) {
			t.Fatalf("case %d: %s is not JSON", i, body)
		}
		m := &Message{Body: body, Version: Draft}
		m.Event = Event{Type: e, Raw: s.fields[fieldEvent].of(body), self: s.fields[fieldEvent], native: s.native}
		m.Capabilities.DenyOnly = true
		m.Event.hasContent = true
		v := View{Native: r.IntN(2) == 0, Content: ContentSelection{Default: selections[r.IntN(3)]}}
		for range r.IntN(3) {
			if v.Content.Categories == nil {
				v.Content.Categories = map[string]Selection{}
			}
			v.Content.Categories[categories[r.IntN(len(categories))]] = selections[r.IntN(3)]
		}

		out := m.AppendIntercept(nil, v)
		var want, got any
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		event := want.(map[string]any)["params"].(map[string]any)["event"].(map[string]any)
		for _, path := range contentPaths[e] {
			reference(event, path, v.Content)
		}
		if !v.Native {
			delete(event, "native")
		}
		if err := json.Unmarshal(out, &got); err != nil || !scans(out) {
			t.Fatalf("case %d: projection of %s = %s; want JSON: %v", i, raw, out, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("case %d: projection of %s for %+v\n got %s\nwant %s", i, raw, v, out, fmt.Sprint(want))
		}
		same := string(out) == string(body)
		if m.Verbatim(v) != same {
			t.Fatalf("case %d: Verbatim(%+v) of %s = %t; want %t", i, v, raw, !same, same)
		}
		if !same {
			reduced++
		}
	}
	if reduced < 5000 {
		t.Errorf("%d cases showed less than the whole event; want thousands", reduced)
	}
}
