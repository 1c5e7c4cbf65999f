package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files below a directory that stands for the root.
func tree(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	unified = "24 23 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	legacy  = "33 25 0:29 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n" +
		"34 25 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
)

func TestTheLeastLimitCounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		bytes uint64
		file  string
	}{
		{"no control groups", nil, 0, ""},
		{"a service of version 2", map[string]string{
			"proc/self/cgroup": "0::/system.slice/inofd.service\n", "proc/self/mountinfo": unified,
			"sys/fs/cgroup/system.slice/memory.max":               "max\n",
			"sys/fs/cgroup/system.slice/inofd.service/memory.max": "67108864\n",
		}, 64 << 20, "/sys/fs/cgroup/system.slice/inofd.service/memory.max"},
		{"a group above has less", map[string]string{
			"proc/self/cgroup": "0::/system.slice/inofd.service\n", "proc/self/mountinfo": unified,
			"sys/fs/cgroup/system.slice/memory.max":               "33554432\n",
			"sys/fs/cgroup/system.slice/inofd.service/memory.max": "67108864\n",
		}, 32 << 20, "/sys/fs/cgroup/system.slice/memory.max"},
		{"version 2 without a limit", map[string]string{
			"proc/self/cgroup": "0::/x\n", "proc/self/mountinfo": unified, "sys/fs/cgroup/x/memory.max": "max\n",
		}, 0, ""},
		{"version 1", map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/ab\n1:cpu,cpuacct:/docker/ab\n", "proc/self/mountinfo": legacy,
			"sys/fs/cgroup/memory/memory.limit_in_bytes":           "9223372036854771712\n",
			"sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes": "67108864\n",
		}, 64 << 20, "/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes"},
		{"version 1 without a limit", map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "proc/self/mountinfo": legacy,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, ""},
		{"a container of version 1, which sees its own group as the root of the mount", map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/ab\n",
			"proc/self/mountinfo":                        strings.Replace(legacy, "0:29 / /", "0:29 /docker/ab /", 1),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n",
		}, 128 << 20, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"a container of version 2 with a namespace of its own", map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": unified, "sys/fs/cgroup/memory.max": "134217728\n",
		}, 128 << 20, "/sys/fs/cgroup/memory.max"},
		{"a group beside the namespace", map[string]string{
			"proc/self/cgroup": "0::/../other\n", "proc/self/mountinfo": unified, "sys/fs/cgroup/memory.max": "134217728\n",
		}, 128 << 20, "/sys/fs/cgroup/memory.max"},
		{"both, memory with version 1 (hybrid)", map[string]string{
			"proc/self/cgroup":                             "4:memory:/a\n0::/b\n",
			"proc/self/mountinfo":                          legacy + "43 25 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "67108864\n",
		}, 64 << 20, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes"},
		{"a mount point with a space", map[string]string{
			"proc/self/cgroup": "0::/x\n", "proc/self/mountinfo": "24 23 0:22 / /my\\040groups rw - cgroup2 cgroup2 rw\n",
			"my groups/x/memory.max": "1048576\n",
		}, 1 << 20, "/my groups/x/memory.max"},
	} {
		l, err := memoryLimit(tree(t, c.files))
		if err != nil || l.Bytes != c.bytes || l.File != c.file {
			t.Errorf("%s: %+v, %v; want %d of %q", c.name, l, err, c.bytes, c.file)
		}
	}
}

func TestALimitThatIsNoNumberIsSaid(t *testing.T) {
	root := tree(t, map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": unified, "sys/fs/cgroup/memory.max": "lots\n"})
	if _, err := memoryLimit(root); err == nil || !strings.Contains(err.Error(), `/sys/fs/cgroup/memory.max: "lots" is no number`) {
		t.Error(err)
	}
}
