// Command ahp-gateway is a gateway for the Agent Hooks Protocol: to every agent
// harness it is a policy backend, to every registered policy backend it is a
// harness.
//
//	ahp-gateway serve --config gateway.yaml
//	ahp-gateway validate --config gateway.yaml
//	ahp-gateway diff --config new.yaml --against gateway.yaml
//	ahp-gateway demo
//	ahp-gateway send --url http://127.0.0.1:8787 --command 'git status'
//	ahp-gateway health --config gateway.yaml
//	ahp-gateway tenant add --file acme.yaml
//
// # Exit codes
//
// 0 is success, 1 a configuration or runtime error, and 2 a mistake in how the
// command was called. The send command differs, because scripts read the
// decision from it: 0 pass, 2 deny, 3 ask or changed, and 1 everything else,
// mistakes in how it was called included. That of diff is 3 where there are
// differences.
package main
