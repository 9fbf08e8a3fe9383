module github.com/ahp-gateway/ahp-gateway

go 1.26
