package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// parse reads a Go file below root.
func parse(root, name string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(name)), nil, parser.ParseComments)
}

// unquote returns the value of a literal that the parser has accepted.
func unquote(literal string) string {
	text, err := strconv.Unquote(literal)
	if err != nil {
		panic(err) // not a literal of Go
	}
	return text
}

// testFiles returns the file of every test function below root, slash-separated,
// by "folder.TestName".
func testFiles(root string) (map[string]string, error) {
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parse(root, name)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				found[filepath.ToSlash(filepath.Dir(name))+"."+fn.Name.Name] = name
			}
		}
		return nil
	})
	return found, err
}
