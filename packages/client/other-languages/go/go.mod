module github.com/keyward/keyward/packages/client/other-languages/go

go 1.19
