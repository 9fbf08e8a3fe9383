package ahp

// AppendIntercept appends the request that a backend with view v is sent before
// any response was accepted, by a gateway that can only deny.
func (m *Message) AppendIntercept(dst []byte, v View) []byte {
	capabilities := m.Capabilities.Raw
	if !m.Capabilities.DenyOnly {
		capabilities = []byte(`{"effects":[]}`)
		if m.Capabilities.Effects.Has(EffectDeny) {
			capabilities = DenyAlone
		}
	}
	return append(dst, m.Compose(nil, m.Shown(nil, m.Event.Raw, v), capabilities, m.State)...)
}

// Verbatim reports whether AppendIntercept changes nothing for view v.
func (m *Message) Verbatim(v View) bool { return m.Whole(v) && m.Capabilities.DenyOnly }
