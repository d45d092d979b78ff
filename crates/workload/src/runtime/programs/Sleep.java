// Sleeps for TARGET_NS in a loop and writes the start and end of each sleep: see sleep error in docs/sleep.md.
// The call is Thread.sleep(millis, nanos), the only one in every Java version that accepts less than 1 ms.

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;

final class Sleep {
    static byte[] sleepOnce(long targetNs) throws InterruptedException {
        long before = System.nanoTime();
        Thread.sleep(targetNs / 1_000_000, (int) (targetNs % 1_000_000));
        long after = System.nanoTime();
        return (before + " " + after + "\n").getBytes(StandardCharsets.US_ASCII);
    }

    public static void main(String[] arguments) throws Exception {
        long targetNs = Long.parseLong(arguments[0]);
        // Not System.out, which hides write errors after the reader has closed the pipe.
        FileOutputStream out = new FileOutputStream(FileDescriptor.out);
        for (int i = Integer.parseInt(arguments[1]); i > 0; i--) {
            sleepOnce(100_000);
        }
        String version = System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version");
        String ready = "ready " + ProcessHandle.current().pid() + " " + version + "\n";
        out.write(ready.getBytes(StandardCharsets.US_ASCII));
        if (System.in.read() < 0) {
            System.exit(1);
        }
        while (true) {
            // After the reader has closed the pipe, an exception ends the program.
            out.write(sleepOnce(targetNs));
        }
    }
}
