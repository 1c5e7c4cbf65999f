package portguard

// The object is committed, so that nobody needs a compiler to build or to run this. To make it
// again after a change of guard.c, on Debian: apt-get install clang llvm libbpf-dev, and go
// generate. TestTheObjectIsOfThisSource fails where that was forgotten.

//go:generate sh -c "cd bpf && clang -O2 -g -Wall -Werror -target bpf -mcpu=v3 -I/usr/include/$(uname -m)-linux-gnu -ffile-prefix-map=$PWD=. -c guard.c -o guard.o && llvm-strip -g guard.o && sha256sum guard.c guard.o >guard.sum"
