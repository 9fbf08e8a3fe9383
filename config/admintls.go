package config

// AdminTLS serves the private listener over TLS when CertFile is set.
type AdminTLS struct {
	// CertFile and KeyFile are a PEM certificate chain and its key.
	CertFile, KeyFile string
	// ClientCAFile is a PEM bundle of the roots of client certificates, without
	// one of which nothing but health is served. "" asks for none.
	ClientCAFile string
	// Names are the names of client certificates that may use the admin API as
	// its keys do.
	Names []CertificateName
}

// adminTLS reads the section at s of how the private listener is secured.
func (r *reader) adminTLS(s spot, f *File) {
	o := r.object(s)
	cert, hasCert := o.need("certFile", "write the path of a PEM certificate chain")
	key, hasKey := o.need("keyFile", "write the path of its PEM private key")
	var a AdminTLS
	if at, ok := o.get("clientCAFile"); ok {
		a.ClientCAFile = r.caFile(at)
	}
	if at, ok := o.get("names"); ok {
		first := make(map[CertificateName]string)
		for _, n := range r.certificates(at) {
			if path, dup := first[n.name]; dup {
				r.mistake(n.at, "", "is the same name as "+path, "keep one of them")
				continue
			}
			first[n.name] = n.at.path
			a.Names = append(a.Names, n.name)
		}
		if o.usable() && !o.has("clientCAFile") {
			r.unless(cause{file: r.main, of: "adminTLS.clientCAFile"}).mistake(at, "", "no client certificate is asked for", "write clientCAFile with the roots of client certificates beside it")
		}
	}
	o.done()
	if !o.usable() {
		return
	}
	if f.Admin == "off" {
		r.mistake(s, "", "there is no private listener to secure", "write an address for admin, or remove this")
	}
	if hasCert && hasKey {
		pair := r.keyPair(s, cert, key)
		a.CertFile, a.KeyFile = pair.CertFile, pair.KeyFile
		f.AdminTLS = a
	}
}

// adminTLS prints how the private listener is secured.
func (p *printer) adminTLS(a *AdminTLS) {
	p.open("adminTLS")
	p.text("certFile", a.CertFile)
	p.text("keyFile", a.KeyFile)
	if a.ClientCAFile != "" {
		p.text("clientCAFile", a.ClientCAFile)
	}
	p.certificateNames("names", a.Names)
	p.close()
}
