package config

import "path/filepath"

// Environ looks up an environment variable, as os.LookupEnv does, also from
// several goroutines at once. Nil means os.LookupEnv.
type Environ func(name string) (value string, ok bool)

// Load reads the gateway file at path and every file that it names. It returns
// the configuration and its warnings or, where anything is wrong, an error
// that is a [Mistakes] with every mistake found, and the warnings beside it.
// Nothing is kept of a file with a mistake.
func Load(path string, env Environ) (*File, []Mistake, error) {
	r := newReader(path, env)
	data, err := r.read(path, maxFile)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	return r.gateway(path, data)
}

// Parse is Load for a gateway file whose bytes are at hand. name is what
// mistakes call it, and the paths that it holds are relative to name's folder.
func Parse(name string, data []byte, env Environ) (*File, []Mistake, error) {
	r := newReader(name, env)
	r.noteSource(name)
	return r.gateway(name, data)
}

// LoadRegistration reads one portable registration document by itself: every
// rule of its snapshot is checked, and nothing that depends on a gateway file,
// on the environment or on other files.
func LoadRegistration(path string) (*Registration, []Mistake, error) {
	data, _, err := readFile(path, maxFile)
	if err != nil {
		return nil, nil, unreadable(path, err)
	}
	return ParseRegistration(path, data)
}

// ParseRegistration is LoadRegistration for a document whose bytes are at hand.
func ParseRegistration(name string, data []byte) (*Registration, []Mistake, error) {
	r := newReader(name, nil)
	var reg *Registration
	if root := r.parse(r.source(name), data); root != nil {
		reg = r.registration(spot{node: root}, &terms{alone: true})
	}
	warnings, err := r.result()
	if err != nil {
		return nil, warnings, err
	}
	return reg, warnings, nil
}

func (r *reader) gateway(name string, data []byte) (*File, []Mistake, error) {
	var f *File
	if root := r.parse(r.source(name), data); root != nil {
		f = r.file(spot{node: root})
	}
	warnings, err := r.result()
	if err != nil {
		return nil, warnings, err
	}
	f.Sources = r.sources
	if r.loader != nil {
		r.loader.loaded = r.basis
	}
	return f, warnings, nil
}

// document reads a registration document that another one names, once.
func (r *reader) document(s spot) (spot, bool) {
	path, ok := r.text(s)
	if !ok {
		return spot{}, false
	}
	if path == "" {
		r.mistake(s, "", "is an empty path", "write the path of a registration document, or the document itself")
		return spot{}, false
	}
	full := r.resolve(path)
	known, ok := r.trees.of(full)
	switch {
	case !ok:
		data, err := r.read(full, maxFile)
		if err != nil {
			r.unread(s, shown(path), "the registration document cannot be read, "+err.Error(), "write a path relative to the folder "+shown(filepath.Base(r.base))+" of the "+r.role)
		} else {
			known.root = r.parse(r.source(full), data)
		}
		known.sum = r.sums[full]
		r.trees.keep(full, known)
	case known.root == nil:
		r.source(full) // whose mistakes are listed as if this one had read it
		r.incomplete = true
	default:
		r.noteSource(full)
		r.sums[full] = known.sum
	}
	return spot{node: known.root}, known.root != nil
}

func unreadable(path string, err error) Mistakes {
	return Mistakes{{File: path, What: "cannot be read, " + err.Error(), Instead: "write the path of a file that the process may read"}}
}
