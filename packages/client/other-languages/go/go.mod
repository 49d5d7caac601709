module keyward

go 1.19
