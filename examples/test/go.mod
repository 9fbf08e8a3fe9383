module github.com/ahp-gateway/ahp-gateway/examples/test

go 1.26.0
