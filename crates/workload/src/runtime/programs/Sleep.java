// Sleeps for TARGET_NS again and again, and writes when each sleep began and ended: see sleep error in docs/sleep.md.
// The call is Thread.sleep(millis, nanos), the only one that every Java has and that can ask for less than 1 ms.

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
        // Not System.out, which hides that nobody reads.
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
            // Once nobody reads, an exception ends the program.
            out.write(sleepOnce(targetNs));
        }
    }
}
