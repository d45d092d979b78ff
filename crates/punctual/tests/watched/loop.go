// As loop.py, in Go, in one thread that sleeps by itself.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

func now() int64 {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func main() {
	runtime.LockOSThread()
	name, text := []byte("loop\x00"), make([]byte, 100)
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
	log, _ := os.Create(os.Args[1])
	counted, _ := os.Open("/proc/thread-self/schedstat")
	for turn := 0; ; turn++ {
		length := syscall.NsecToTimespec(5000000)
		syscall.Nanosleep(&length, nil)
		for start := now(); ; {
			if now()-start >= 100000 && (turn%40 != 20 || now()-start >= 5000000) {
				size, _ := counted.ReadAt(text, 0)
				fmt.Fprintf(log, "%d %d %s\n", start, now(), strings.Fields(string(text[:size]))[1])
				break
			}
		}
	}
}
