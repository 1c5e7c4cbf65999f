package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// EnvImage names the directory that `make vm` prepared.
const EnvImage = "INOF_VM_DIR"

// qemu is the program that runs machines.
const qemu = "qemu-system-x86_64"

// Image finds the directory that `make vm` prepared: $INOF_VM_DIR, or out/vm here or
// beside the directory of this program. The error says what is missing.
func Image() (string, error) {
	if _, err := exec.LookPath(qemu); err != nil {
		return "", fmt.Errorf("virtual machines need QEMU (apt-get install --no-install-recommends qemu-system-x86): %w", err)
	}
	dirs := []string{os.Getenv(EnvImage)}
	if dirs[0] == "" {
		dirs[0] = filepath.Join("out", "vm")
		if self, err := os.Executable(); err == nil {
			dirs = append(dirs, filepath.Join(filepath.Dir(self), "..", "out", "vm"))
		}
	}
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "initrd.img")); err == nil {
			return filepath.Abs(d)
		}
	}
	return "", fmt.Errorf("no virtual machine is prepared in %s; run make vm, or name its directory in %s", dirs[0], EnvImage)
}

// UseImage has this process and those it starts look for machines in dir, unless the
// environment names another directory.
func UseImage(dir string) {
	if os.Getenv(EnvImage) != "" {
		return
	}
	if dir, err := filepath.Abs(dir); err == nil {
		os.Setenv(EnvImage, dir)
	}
}
