package zonefilter

// The object is committed, so that nobody needs a compiler to build or to run this. To make it
// again after a change of filter.c, on Debian: apt-get install clang llvm libbpf-dev, and
// go generate. TestTheObjectIsOfThisSource says when that was forgotten.

//go:generate sh -c "cd bpf && clang -O2 -g -Wall -Werror -target bpf -mcpu=v3 -I/usr/include/$(uname -m)-linux-gnu -ffile-prefix-map=$PWD=. -c filter.c -o filter.o && llvm-strip -g filter.o && sha256sum filter.c filter.o >filter.sum"
