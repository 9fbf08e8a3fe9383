//go:build interop

package ahp

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const sdkBase = "https://agenthooksprotocol.org/schemas/draft/"

// sdkDocs are the SDK's schemas, from the file that AHP_SDK_SCHEMAS names.
var sdkDocs = sync.OnceValue(func() []any {
	path := os.Getenv("AHP_SDK_SCHEMAS")
	if path == "" {
		panic("AHP_SDK_SCHEMAS does not name the SDK's schemas.json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	docs, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	return docs.([]any)
})

var sdkCompiler = sync.OnceValue(func() *jsonschema.Compiler { return compilerOf(sdkDocs()) })

func ofSDK(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	return compiled(t, sdkCompiler(), sdkBase+name)
}

// fromEnv returns the number that an environment variable holds. AHP_SDK_SEED
// is the seed and AHP_SDK_SCALE multiplies the number of cases.
func fromEnv(t *testing.T, name string) int {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q; want a positive integer", name, text)
	}
	return n
}

// enough fails a test that saw too little of either verdict.
func enough(t *testing.T, counts tally, scale int) {
	t.Helper()
	t.Log(&counts)
	if counts[bothAccept] < 100*scale || counts[bothRefuse] < 50*scale {
		t.Errorf("%v; want more of both verdicts", &counts)
	}
}

// TestSDKRequests compares Decode with the SDK's schemas on requests and
// notifications of every event.
func TestSDKRequests(t *testing.T) {
	seed, scale := fromEnv(t, "AHP_SDK_SEED"), fromEnv(t, "AHP_SDK_SCALE")
	sampled := func(e EventType, m Method) *sampler {
		return &sampler{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(e)<<8|uint64(m)))}
	}
	var sum tally
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		if e.Observable(Draft) {
			t.Run("observe/"+e.String(), func(t *testing.T) {
				r := sampled(e, MethodObserve)
				counts := compareMessages(t, r, 500*scale, ofSDK(t, "observe-notification.schema.json"), func() *tree { return r.observation(e) }, decodesAs(MethodObserve))
				enough(t, counts, scale)
				sum.add(counts)
			})
		}
		if e.Interceptable(Draft) {
			t.Run("intercept/"+e.String(), func(t *testing.T) {
				r := sampled(e, MethodIntercept)
				counts := compareMessages(t, r, 500*scale, ofSDK(t, "intercept-request.schema.json"), func() *tree { return r.interception(e) }, decodesAs(MethodIntercept))
				enough(t, counts, scale)
				sum.add(counts)
			})
		}
	}
	for _, method := range []Method{MethodCapabilities, MethodConfiguration} {
		name := strings.TrimPrefix(method.String(), "hooks/")
		t.Run(name, func(t *testing.T) {
			r := sampled(EventUnknown, method)
			counts := compareMessages(t, r, 500*scale, ofSDK(t, name+"-request.schema.json"), func() *tree { return r.question(method) }, decodesAs(method))
			enough(t, counts, scale)
			sum.add(counts)
		})
	}
	t.Logf("requests and notifications: %v", &sum)
	if !t.Failed() && sum.total() < 20_000 {
		t.Errorf("%d cases; want at least 20000", sum.total())
	}
}

// TestSDKResponses compares DecodeResponse and CheckEffect with the SDK's
// schemas on answers at every event that can be intercepted.
func TestSDKResponses(t *testing.T) {
	seed, scale := fromEnv(t, "AHP_SDK_SEED"), fromEnv(t, "AHP_SDK_SCALE")
	var sum tally
	for e := EventUnknown + 1; e < EventTypeCount; e++ {
		if !e.Interceptable(Draft) {
			continue
		}
		t.Run(e.String(), func(t *testing.T) {
			var name strings.Builder
			for word := range strings.SplitSeq(e.String(), ".") {
				name.WriteString(strings.ToUpper(word[:1]) + word[1:])
			}
			r := &sampler{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(e)))}
			counts := compareAnswers(t, r, 400*scale, ofSDK(t, "intercept-response.schema.json#/$defs/"+name.String()+"InterceptResponse"), e)
			enough(t, counts, scale)
			sum.add(counts)
		})
	}
	t.Logf("responses: %v", &sum)
}
