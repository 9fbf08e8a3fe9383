package config

// Private is where the private listener of a gateway file is.
type Private struct {
	Address  string // host:port, or "off" for none
	CertFile string // its PEM certificate chain; "" for plain http
}

// LoadPrivate reads of the gateway file at path where its private listener is.
// It reads no other file, nothing of the environment, and does not mind mistakes
// elsewhere in the file: a gateway goes on serving while its file has some, and
// who asks for its health must find it. The error is a [Mistakes].
func LoadPrivate(path string) (Private, error) {
	r := newReader(path, nil)
	data, err := r.read(path, maxFile)
	if err != nil {
		return Private{}, unreadable(path, err)
	}
	root := r.parse(r.source(path), data)
	if root == nil || root.kind != kindObject {
		if _, err := r.result(); err != nil {
			return Private{}, err
		}
	}
	// The mistakes of the syntax stay with the first reader, those that matter
	// here are found by the next.
	r = newReader(path, nil)
	r.source(path)
	o := r.object(spot{node: root})
	p := Private{Address: Default().Admin}
	if at, ok := o.get("admin"); ok {
		p.Address = r.admin(at, p.Address, true)
	}
	if at, ok := o.get("adminTLS"); ok {
		t := r.object(at)
		if cert, ok := t.need("certFile", "write the path of a PEM certificate chain"); ok {
			p.CertFile, _ = r.path(cert)
		}
	}
	if _, err := r.result(); err != nil {
		return Private{}, err
	}
	return p, nil
}
