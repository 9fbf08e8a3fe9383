# The rules of the example. input is params of the message: protocolVersion,
# event, capabilities and, in draft, state.
package ahp

# The answer: a list of effects, which is empty where there is no objection. One
# deny is an answer of its own.
effects := [sorted_denials[0]] if {
	count(deny) > 0
} else := array.concat(changes, questions)

sorted_denials := [d | some d in deny]

# A pattern sees text, while a shell sees what the text expands to: these rules
# are an example, not protection.
deny contains denial("The command cannot be read.", "com.example.unreadable") if {
	input.event.tool.kind == "shell"
	not command
}

deny contains denial("Force pushes are not allowed.", "com.example.force_push") if {
	regex.match(`(^|\s)git\s([^\n]*\s)?push\s([^\n]*\s)?(--force|-f)(\s|$)`, command)
}

# Only what the harness advertised may be answered. Where it cannot change the
# input or ask, the answer is the deny that permits less.
deny contains denial("Use a timeout of at most 60000 ms.", "com.example.timeout") if {
	too_long
	not can_merge
}

deny contains denial("Deleting in a cluster needs somebody's consent.", "com.example.cluster_delete") if {
	cluster_delete
	not can_ask
}

default changes := []

changes := [{"type": "modify", "target": "input", "operation": "merge", "value": {"timeout": max_timeout}}] if too_long

default questions := []

questions := [{"type": "ask"}] if cluster_delete

max_timeout := 60000

too_long if {
	is_number(input.event.tool.input.timeout)
	input.event.tool.input.timeout > max_timeout
}

cluster_delete if regex.match(`(^|\s)kubectl\s([^\n]*\s)?delete(\s|$)`, command)

can_merge if input.capabilities.modify.input.merge == true

can_ask if "ask" in input.capabilities.effects

# A shell command, which tools take as text or as its words.
command := input.event.tool.input.command if is_string(input.event.tool.input.command)

command := concat(" ", words) if {
	words := input.event.tool.input.command
	is_array(words)
	count(words) > 0
	every word in words { is_string(word) }
}

denial(reason, code) := {"type": "deny", "reason": reason, "code": code}
