package ahp

// The shapes of content: what models, tools and people said.

var selection = enum("body", "metadata", "omit")

var gap = closed(need("reason", filled), opt("path", filled)).
	named("gap", "Why something that was selected is missing.")

var contentReference = closed(need("ref", filled)).
	named("contentReference", "Where an attachment was uploaded to.")

var (
	contentPart = partOf("part", "A content part: a text inline, or an attachment by reference. What it holds is what its selection says.", enum("text", "attachment"))
	textPart    = partOf("textPart", "A content part that is a text.", enum("text"))
	textParts   = list(textPart)
)

func partOf(name, about string, kind *shape) *shape {
	attachments := len(kind.values) > 1
	body := ban("body")
	if attachments {
		body = opt("body", contentReference)
	}
	s := closed(
		need("id", filled),
		need("kind", kind),
		need("mediaType", mediaType),
		need("selection", selection),
		opt("category", filled),
		opt("synthesized", boolean),
		opt("text", text),
		body,
		opt("gap", gap),
		opt("size", count),
		opt("sha256", digest),
	).named(name, about)
	s.part = true
	s.obeying(
		rule{when: []cond{s.is("selection", "body")}, one: []string{"text", "body", "gap"}},
		rule{when: []cond{s.isNot("selection", "body")}, ban: []string{"text", "body", "gap"}, because: "beside that selection"},
		rule{when: []cond{s.is("kind", "text")}, must: []cond{has("mediaType", bitPlain)}, because: "is not that of a text"},
		// Sizes and digests describe what is not here.
		rule{when: []cond{has("text", 0)}, ban: []string{"size", "sha256"}, because: "beside text"},
	)
	if attachments {
		s.obeying(
			rule{when: []cond{s.is("kind", "text")}, ban: []string{"body"}, because: "in a text"},
			rule{when: []cond{s.is("kind", "attachment")}, ban: []string{"text"}, because: "in an attachment"},
			rule{when: []cond{s.is("kind", "attachment")}, must: []cond{has("mediaType", bitAttachment)}, because: "is not that of an attachment"},
			rule{when: []cond{has("body", 0)}, ban: []string{"size", "sha256"}, because: "beside body"},
		)
	}
	return s
}

var (
	canonical        = messageOf("message", "A canonical message.", "system", "developer", "user", "assistant", "tool")
	userMessage      = messageOf("userMessage", "A canonical message of a user.", "user")
	assistantMessage = messageOf("assistantMessage", "A canonical message of the assistant.", "assistant")
	messageList      = list(canonical)
)

func messageOf(name, about string, roles ...string) *shape {
	return closed(
		need("id", filled),
		need("role", enum(roles...)),
		need("parts", list(contentPart)),
		opt("synthesized", boolean),
	).named(name, about)
}

var parts = list(contentPart)
