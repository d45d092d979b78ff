// As loop.py, in Java.
import java.io.*;

class Loop {
    public static void main(String[] words) throws Exception {
        Thread.currentThread().setName("loop");
        var log = new FileOutputStream(words[0]);
        var counted = new RandomAccessFile("/proc/thread-self/schedstat", "r");
        for (int turn = 0; ; turn++) {
            Thread.sleep(5);
            long start = System.nanoTime(), length = turn % 40 == 20 ? 5000000 : 100000;
            while (System.nanoTime() - start < length) { }
            counted.seek(0);
            String waited = counted.readLine().split(" ")[1];
            log.write((start + " " + System.nanoTime() + " " + waited + "\n").getBytes());
        }
    }
}
