// Package keep is what a process keeps over its end: rows in tables, each the present
// truth of its key, and nothing that has to be replayed.
//
// A row goes two ways. Put writes it at once to a file that ends with the machine and
// not with the process (unsaved.go; a tmpfs): no disk is waited for, and a process that is
// killed loses nothing. A writer of its own (keeper.go) brings it to a database on the
// disk (database.go; bbolt) a moment later, many rows in one transaction that a power cut
// leaves done or not done; then the file has done its duty and is emptied.
//
//	Put ─┬─> unsaved file, in memory            (survives SIGKILL)
//	     └─> writer, 10 ms later ──> bbolt, fsync (survives a power cut)
//
// bbolt trusts its file: it maps it and follows what it finds there, so that one wrong bit can
// end the process. Therefore the file is first read and checked by read.go, which trusts
// nothing, and is opened by bbolt only when every page is sound. Every row carries a
// checksum (CRC-32C) of its table, key and value. A row that is damaged is left out; a file that
// is damaged is set aside under another name, and its sound rows are taken to a new
// one. Both are counted and named: see Problem.
package keep
