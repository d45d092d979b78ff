// Sleeps for TARGET_NS in a loop and writes the start and end of each sleep: see sleep error in docs/sleep.md.
// The call is time.Sleep.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

// A reading of Go's clock and the same instant on CLOCK_MONOTONIC, ns. Go does not export its monotonic readings, so
// the kernel's clock is read once, and all other times are differences of Go's readings.
var (
	origin   time.Time
	originNs int64
)

func setOrigin() {
	shortest := time.Duration(1<<63 - 1)
	for i := 0; i < 100; i++ {
		var ts syscall.Timespec
		before := time.Now()
		_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
		took := time.Since(before)
		if errno != 0 {
			fmt.Fprintln(os.Stderr, "Error: clock_gettime:", errno)
			os.Exit(1)
		}
		// The shortest attempt was not interrupted.
		if took < shortest {
			shortest, origin, originNs = took, before, ts.Nano()-int64(took)/2
		}
	}
}

func sleepOnce(target time.Duration) []byte {
	before := time.Now()
	time.Sleep(target)
	after := time.Now()
	return []byte(fmt.Sprintf("%d %d\n", originNs+int64(before.Sub(origin)), originNs+int64(after.Sub(origin))))
}

func main() {
	targetNs, err := strconv.ParseInt(os.Args[1], 10, 64)
	warmUp, warmUpErr := strconv.Atoi(os.Args[2])
	if err != nil || warmUpErr != nil {
		fmt.Fprintln(os.Stderr, "Error: the arguments are TARGET_NS WARM_UP")
		os.Exit(1)
	}
	setOrigin()
	for i := 0; i < warmUp; i++ {
		sleepOnce(100 * time.Microsecond)
	}
	fmt.Printf("ready %d %s\n", os.Getpid(), runtime.Version())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		os.Exit(1)
	}
	for {
		// After the reader has closed the pipe, SIGPIPE ends the program.
		if _, err := os.Stdout.Write(sleepOnce(time.Duration(targetNs))); err != nil {
			os.Exit(1)
		}
	}
}
