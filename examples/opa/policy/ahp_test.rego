package ahp_test

import data.ahp

shell(input_) := {
	"event": {"type": "tool.before", "tool": {"name": "Bash", "kind": "shell", "input": input_}},
	"capabilities": {"effects": ["deny", "ask", "modify"], "modify": {"input": {"merge": true}}},
}

# A harness that can only deny, as every one in 0.1.
only_deny(input_) := object.union(shell(input_), {"capabilities": {"effects": ["deny"], "modify": null}})

codes(effects) := [e.code | some e in effects]

test_pass if ahp.effects == [] with input as shell({"command": "git push"})

test_force_push if {
	every command in ["git push --force", "cd x && git push -f", "git -C x push origin main --force"] {
		codes(ahp.effects) == ["com.example.force_push"] with input as shell({"command": command})
	}
}

test_force_with_lease if ahp.effects == [] with input as shell({"command": "git push --force-with-lease"})

test_words if codes(ahp.effects) == ["com.example.force_push"] with input as shell({"command": ["git", "push", "-f"]})

test_unreadable if {
	every command in [7, [], ["git", 7], {"a": "b"}, null] {
		codes(ahp.effects) == ["com.example.unreadable"] with input as shell({"command": command})
	}
}

test_ask if ahp.effects == [{"type": "ask"}] with input as shell({"command": "kubectl delete pod x"})

test_ask_not_advertised if {
	codes(ahp.effects) == ["com.example.cluster_delete"] with input as only_deny({"command": "kubectl delete pod x"})
}

test_timeout if {
	ahp.effects == [{"type": "modify", "target": "input", "operation": "merge", "value": {"timeout": 60000}}] with input as shell({"command": "make", "timeout": 90000})
}

test_timeout_not_advertised if {
	codes(ahp.effects) == ["com.example.timeout"] with input as only_deny({"command": "make", "timeout": 90000})
}

test_change_and_ask if {
	[e.type | some e in ahp.effects] == ["modify", "ask"] with input as shell({"command": "kubectl delete pod x", "timeout": 90000})
}

# Two rules that deny give one deny: in 0.1 an answer may not hold more.
test_one_deny if {
	count(ahp.effects) == 1 with input as only_deny({"command": "kubectl delete pod x; git push -f", "timeout": 90000})
}
