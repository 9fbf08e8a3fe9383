package ahpgateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// requirements names, for every requirement of the protocol that binds the
// gateway, the tests that show it: "folder.TestName", or a file of the interop
// suite and a word in it.
var requirements = map[string][]string{
	"AHP-CORE-001": {"cmd/ahp-gateway.TestVersionConformance"},
	"AHP-CORE-002": {"cmd/ahp-gateway.TestVersionConformance"},
	"AHP-CORE-003": {"ahp.TestDecodeAccepts", "gateway.TestForwardsByteForByte", "decision.TestAdmit"},
	"AHP-CORE-004": {"gateway.TestDuplicatesJoin", "gateway.TestSameIDOtherContent", "backend.TestRetry"},
	"AHP-CORE-005": {"ahp.TestDecodeEdits"},
	"AHP-RPC-001":  {"gateway.TestMessageErrors", "ahp.TestDecodeEdits", "ahp.TestDecodeResponseEdits"},
	"AHP-RPC-002":  {"gateway.TestObserveBothSnapshots", "gateway.TestPassAndDeny"},
	"AHP-VER-001":  {"ahp.TestDecodeEdits", "gateway.TestPassAndDeny"},
	"AHP-EXT-001":  {"ahp.TestDecodeEdits", "gateway.TestForwardsByteForByte"},
	"AHP-TB-001":   {"ahp.TestDecodeEdits"},
	"AHP-CAP-001":  {"gateway.TestAdvertisesWhatItEnforces", "decision.TestAdmitOnlyAdvertised"},
	"AHP-CAP-002":  {"ahp.TestDecodeEdits"},
	"AHP-DEC-001":  {"decision.TestAdmit"},
	"AHP-DEC-002":  {"gateway.TestPassAndDeny", "decision.TestDirectIsComposed"},
	"AHP-DEC-003":  {"gateway.TestNoSubscription", "decision.TestDirectIsComposed"},
	"AHP-COMP-001": {"gateway.TestSerialInDocumentOrder", "gateway.TestFailureMatrix"},
	"AHP-FAIL-001": {"gateway.TestFailureMatrix", "gateway.TestFailClosedWithoutDeny"},
	"AHP-FAIL-002": {"gateway.TestEachSubscriptionHasItsDeadline", "gateway.TestBudget"},
	"AHP-HTTP-001": {"gateway.TestHTTPErrors", "gateway.TestMessageErrors", "gateway.TestFailureMatrix"},
	"AHP-REG-001":  {"config.TestValidCorpus", "config.TestInvalidCorpus", "config.TestParseConfigurationRefuses"},
	"AHP-REG-002":  {"routing.TestSelectorsOverTheWholeCatalogue", "config.TestInvalidCorpus", "gateway.TestDiscoveryKeepsWhatIsServed"},
	"AHP-REG-003":  {"gateway.TestCredentialsToBackends", "backend.TestRequestHead", "config.TestDraftRegistration", "gateway.TestDiscoveryHasTheCredential"},
	"AHP-EDIT-001": {"decision.TestDirectIsComposed", "gateway.TestEffectsCompose"},
	"AHP-AUTH-001": {"gateway.TestUnauthorizedBeforeEvent", "gateway.TestCredentialBeforeMessage", "gateway.TestProtectedResourceMetadata"},
	// Content goes where it was selected, under whatever category it comes.
	"AHP-CONTENT-001": {"ahp.TestProject", "gateway.TestContentSelection"},
	"AHP-CONTENT-002": {"ahp.TestProject", "ahp.TestContentPaths"},
	"AHP-SEC-001":     {"gateway.TestNoSubscription", "gateway.TestHaltedState"},
}

// outOfScope are requirements of transports the gateway does not have.
var outOfScope = map[string]string{
	"AHP-STDIO-001": "the gateway speaks HTTP only",
}

func TestRequirements(t *testing.T) {
	tests := allTests(t)
	for id, names := range requirements {
		if len(names) == 0 {
			t.Errorf("%s has no test", id)
		}
		for _, name := range names {
			if !slices.Contains(tests, name) {
				t.Errorf("%s is shown by %s, which does not exist", id, name)
			}
		}
	}
	for _, id := range strings.Fields("CORE-001 CORE-002 CORE-003 CORE-004 CORE-005 RPC-001 RPC-002 VER-001 EXT-001 TB-001 CAP-001 CAP-002 " +
		"DEC-001 DEC-002 DEC-003 COMP-001 FAIL-001 FAIL-002 HTTP-001 REG-001 REG-002 REG-003 SEC-001 EDIT-001 CONTENT-001 CONTENT-002 AUTH-001 STDIO-001") {
		if _, out := outOfScope["AHP-"+id]; !out && requirements["AHP-"+id] == nil {
			t.Errorf("AHP-%s has neither a test nor a reason to be out of scope", id)
		}
	}
}

// allTests returns "folder.TestName" of every test function in the tree.
func allTests(t *testing.T) []string {
	t.Helper()
	var tests []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests = append(tests, filepath.ToSlash(filepath.Dir(path))+"."+f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
