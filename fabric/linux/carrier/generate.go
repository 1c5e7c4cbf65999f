package carrier

// The object is committed, so that nobody needs a compiler to build or to run this. To make it
// again after a change of carrier.c, on Debian: apt-get install clang llvm libbpf-dev, and
// go generate. TestTheObjectIsOfThisSource says when that was forgotten.

//go:generate sh -c "cd bpf && clang -O2 -g -Wall -Werror -target bpf -mcpu=v2 -I/usr/include/$(uname -m)-linux-gnu -ffile-prefix-map=$PWD=. -c carrier.c -o carrier.o && llvm-strip -g carrier.o && sha256sum carrier.c carrier.o >carrier.sum"
