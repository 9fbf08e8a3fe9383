package samplepolicy

import "strings"

// texts returns every string in v at any depth, the names of members too. An
// array of strings only is also returned joined by spaces, because some tools
// take a command as its words. The depth is bounded by maxDepth and the size
// by maxBody.
func texts(v any) []string { return appendTexts(nil, v) }

func appendTexts(all []string, v any) []string {
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		words := make([]string, 0, len(v))
		for _, element := range v {
			if word, ok := element.(string); ok {
				words = append(words, word)
			}
			all = appendTexts(all, element)
		}
		if len(words) > 1 && len(words) == len(v) {
			all = append(all, strings.Join(words, " "))
		}
	case map[string]any:
		for name, member := range v {
			all = append(all, name)
			all = appendTexts(all, member)
		}
	}
	return all
}
