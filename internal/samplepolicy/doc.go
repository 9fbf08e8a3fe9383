// Package samplepolicy holds two small policy backends of the Agent Hooks
// Protocol: Rules, a file of patterns, and Secrets, a scanner for credentials.
// The gateway's demo runs both, and they are meant to be read as examples of a
// backend in Go that uses nothing but the standard library.
//
// They are a sample, not protection. A pattern sees text, while a shell sees
// what the text expands to: a variable, an alias, a script written first and
// run later, base64 or a quoted separator gets past every rule here, and a
// harmless commit message that mentions a force-push does not. Whoever needs
// protection limits what the agent's credentials and sandbox can do.
//
// # What they answer
//
// Both speak the snapshots "0.1" and "draft" over POST, at any path.
// hooks/intercept for tool.before is answered with no effect or with one deny;
// a notification is answered with 204 and nothing else. Errors of JSON-RPC
// travel with status 200: -32700 not strict JSON, -32600 no request, -32601
// unknown method, -32001 unknown snapshot, -32602 a member is missing or wrong,
// -32002 another event than tool.before. A body above 2 MiB is 413.
//
// # The rule file
//
// A rule file is one JSON object (the remarks here are not part of it):
//
//	{"rules": [{
//	  "id":      "force-push",                   // unique in the file
//	  "kinds":   ["shell", "mcp"],               // tool kinds it applies to
//	  "tools":   ["Bash"],                       // tool names it applies to as well
//	  "field":   "command",                      // member of the tool input to read
//	  "pattern": "git push .*--force",           // RE2, found anywhere in the text
//	  "reason":  "Force pushes are not allowed.", // what the harness is told
//	  "code":    "com.example.force_push"        // reverse-DNS
//	}]}
//
// Without kinds and tools a rule applies to every tool. A tool whose kind is
// unknown, which draft permits, is taken to be of any kind. Without field all
// strings of the input are read, at any depth, and the names of its members;
// an array of strings is also read as one command line. The pattern sees one
// simple command at a time: text is cut at ; | & and line ends, even inside
// quotes, so that sh -c 'cd x && …' is seen through. The first rule that
// matches decides. id, pattern, reason and code are required; an unknown member
// is a mistake.
package samplepolicy
