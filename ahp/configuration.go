package ahp

// AppendConfigurationRequest appends to dst the draft request
// hooks/configuration, by which a backend is asked for the subscriptions that
// it wants. id is the raw JSON of a non-empty string or an integer.
func AppendConfigurationRequest(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"method":"`...)
	dst = append(dst, MethodConfiguration.String()...)
	dst = append(dst, `","params":{"protocolVersion":"`...)
	dst = append(dst, Draft.String()...)
	return append(dst, `"}}`...)
}

// DecodeConfiguration reads body as the answer to the hooks/configuration
// request that call is, and returns the raw JSON object of what the backend
// advertises, as a span of body.
//
// It accepts one strict JSON-RPC result with the call's id and snapshot whose
// configuration is an object and that holds nothing of another method's. A
// JSON-RPC error is a failure of its own class. Whether the subscriptions may
// be used is for package config. AHP-RPC-001, AHP-VER-001.
func DecodeConfiguration(call *Call, body []byte) ([]byte, Failure) {
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.reset(body)
	d := decoder{s: s}
	f := d.answer(call)
	switch {
	case !f.OK():
	case d.has(fieldResultEffects) || d.has(fieldResultManifest):
		f = Failure{FailMalformedRPC, "result is that of another method"}
	case d.kind(fieldResultConfiguration) != KindObject:
		f = Failure{FailMissingResult, "result.configuration is no object"}
	}
	var configuration []byte
	if f.OK() {
		configuration = d.raw(fieldResultConfiguration)
	}
	s.b = nil
	return configuration, f
}
