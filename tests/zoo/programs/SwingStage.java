import java.awt.Color;
import java.awt.Dimension;
import java.awt.Graphics;
import java.awt.Rectangle;
import java.awt.Toolkit;
import java.awt.event.KeyAdapter;
import java.awt.event.KeyEvent;
import java.awt.event.MouseAdapter;
import java.awt.event.MouseEvent;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.Socket;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.swing.JFrame;
import javax.swing.JPanel;
import javax.swing.SwingUtilities;
import javax.swing.Timer;

/** A stage of Java Swing: programs/actor.py in Java. Times are nanoseconds of System.nanoTime(), which is CLOCK_MONOTONIC. */
public final class SwingStage extends JPanel {
    private static final Map<String, int[]> SCENES = Map.of(
        "caret", new int[] {40, 40, 2, 16, 500},
        "clock", new int[] {300, 20, 60, 16, 1000},
        "spinner", new int[] {40, 120, 32, 32, 40},
        "video", new int[] {200, 100, 160, 120, 40});

    private final Map<Rectangle, Color> painted = new LinkedHashMap<>();
    private final List<Timer> scenes = new ArrayList<>();
    private final List<Long> log = new ArrayList<>();
    private double[] times = {};
    private String load = "timer";
    private long began;
    private int count, drawn, due, inputs;

    private SwingStage() {
        setPreferredSize(new Dimension(500, 400));
        setBackground(new Color(0x202020));
        setFocusable(true);
        addKeyListener(new KeyAdapter() {
            @Override public void keyPressed(KeyEvent event) { input(); }
        });
        addMouseListener(new MouseAdapter() {
            @Override public void mousePressed(MouseEvent event) { input(); }
        });
    }

    @Override protected void paintComponent(Graphics graphics) {
        super.paintComponent(graphics);
        painted.forEach((rect, colour) -> {
            graphics.setColor(colour);
            graphics.fillRect(rect.x, rect.y, rect.width, rect.height);
        });
        if (drawn != count) {
            drawn = count;
            log.add(System.nanoTime());
        }
    }

    private void fill(int x, int y, int width, int height, int colour) {
        Rectangle rect = new Rectangle(x, y, width, height);
        painted.put(rect, new Color(colour));
        paintImmediately(rect);
        Toolkit.getDefaultToolkit().sync();
    }

    private void answer() {
        count++;
        fill(40 + 20 * (count % 20), 300, 18, 40, (0x204060 + 0x1F3D59 * (count % 61)) & 0xFFFFFF);
    }

    private static void spinUntil(long at) {
        while (System.nanoTime() < at) {
            Thread.onSpinWait();
        }
    }

    private static void sleepUntil(long at) {
        try {
            Thread.sleep(Math.max(0, (at - System.nanoTime()) / 1_000_000));
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private void input() {
        inputs++;
        began = System.nanoTime();
        long[] at = new long[times.length];
        for (int n = 0; n < at.length; n++) {
            at[n] = began + (long) (times[n] * 1e9);
        }
        switch (load) {
            case "timer" -> timer(at);
            case "spin", "block", "chunks" -> inTheLoop(at, 0);
            case "thread" -> new Thread(() -> {
                for (long when : at) {
                    spinUntil(when);
                    SwingUtilities.invokeLater(this::answer);
                }
            }).start();
            default -> throw new IllegalArgumentException(load);
        }
    }

    private void timer(long[] at) {
        for (long when : at) {
            int left = (int) ((when - System.nanoTime()) / 1_000_000);
            if (left <= 0) {
                answer();
            } else {
                after(left, this::answer);
            }
        }
    }

    private static void after(int milliseconds, Runnable action) {
        Timer timer = new Timer(milliseconds, event -> action.run());
        timer.setRepeats(false);
        timer.start();
    }

    private void inTheLoop(long[] at, int step) {
        int next = step;
        if (load.equals("block")) {
            sleepUntil(at[step]);
        } else {
            spinUntil(load.equals("spin") ? at[step] : Math.min(at[step], System.nanoTime() + 5_000_000));
        }
        if (System.nanoTime() >= at[step] - 1_000_000) {
            answer();
            next++;
        }
        int following = next;
        if (following < at.length) {
            SwingUtilities.invokeLater(() -> inTheLoop(at, following));
        }
    }

    private void beside(List<String> names) {
        scenes.forEach(Timer::stop);
        scenes.clear();
        for (String name : names) {
            int[] scene = SCENES.get(name);
            int[] turn = {0};
            Timer timer = new Timer(scene[4], event ->
                fill(scene[0], scene[1], scene[2], scene[3], 0x303030 + 0x0F1B2D * (++turn[0] % 7)));
            timer.start();
            scenes.add(timer);
        }
    }

    private static List<String> list(String order, String key) {
        Matcher found = Pattern.compile("\"" + key + "\": \\[(.*?)\\]").matcher(order);
        if (!found.find()) {
            return null;
        }
        List<String> words = new ArrayList<>();
        for (String word : found.group(1).split(",")) {
            if (!word.isBlank()) {
                words.add(word.trim().replace("\"", ""));
            }
        }
        return words;
    }

    private void obey(String order, PrintStream out) {
        List<String> names = list(order, "beside");
        if (names != null) {
            beside(names);
        }
        List<String> at = list(order, "times");
        if (at != null) {
            times = at.stream().mapToDouble(Double::parseDouble).toArray();
            Matcher found = Pattern.compile("\"load\": \"(\\w+)\"").matcher(order);
            load = found.find() ? found.group(1) : "timer";
            log.clear();
            due = times.length;
            inputs = 0;
        }
        List<String> changes = new ArrayList<>();
        log.forEach(when -> changes.add(String.valueOf(when / 1e9)));
        out.println("{\"began\": " + began / 1e9 + ", \"changes\": [" + String.join(",", changes) + "], \"inputs\": " + inputs
            + ", \"left\": " + (due - log.size()) + "}");
    }

    public static void main(String[] arguments) throws Exception {
        SwingStage stage = new SwingStage();
        SwingUtilities.invokeAndWait(() -> {
            JFrame frame = new JFrame("zoo");
            frame.setDefaultCloseOperation(JFrame.EXIT_ON_CLOSE);
            frame.add(stage);
            frame.pack();
            frame.setVisible(true);
        });
        Socket socket = new Socket("127.0.0.1", Integer.parseInt(arguments[0]));
        socket.setTcpNoDelay(true);
        PrintStream out = new PrintStream(socket.getOutputStream(), true);
        List<String> scenes = new ArrayList<>();
        SCENES.forEach((name, s) -> scenes.add("\"" + name + "\": [" + s[0] + "," + s[1] + "," + s[2] + "," + s[3] + "]"));
        out.println("{\"scenes\": {" + String.join(",", scenes) + "}}");
        BufferedReader lines = new BufferedReader(new InputStreamReader(socket.getInputStream()));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String order = line;
            SwingUtilities.invokeLater(() -> stage.obey(order, out));
        }
        System.exit(0);
    }
}
