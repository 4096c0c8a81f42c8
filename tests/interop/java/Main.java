package interop;

import static interop.Check.since;
import static interop.Check.textOf;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Semaphore;

/**
 * Azure's own Java client in the common cases, see ../CASES.md; ./run builds and starts it.
 * CASE... runs cases, several at once; "rate" measures receiving; "processor member" is one of the
 * processes that the case "processor" starts.
 */
final class Main {
    interface Case {
        void run(Run run) throws Exception;
    }

    private static final Map<String, Case> CASES = new HashMap<>();
    private static final Set<String> LONG = Set.of("quiet", "crash", "processor"); // beside the others from the beginning
    private static final Semaphore PLACES = new Semaphore(4); // for cases at once
    private static final long LIMIT_MS = 480_000; // for all of them

    private Main() {
    }

    private static String line(String name) {
        Run run = new Run(name);
        long start = System.nanoTime();
        String status = "pass";
        try (run) {
            Case work = CASES.get(name);
            Check.check(work != null, "there is no such case here");
            work.run(run);
        } catch (Check.Absent why) {
            status = "absent";
            run.note("%s", why.getMessage());
        } catch (Check.OwnFault why) {
            status = "own-fault";
            run.note("%s", why.getMessage());
        } catch (Check.Skipped why) {
            status = "skipped";
            run.note("%s", why.getMessage());
        } catch (Throwable error) {
            status = "fail";
            run.note("%s", error instanceof AssertionError ? error.getMessage() : textOf(error));
            error.printStackTrace();
        }
        double seconds = run.seconds > 0 ? run.seconds : since(start);
        return String.format(Locale.ROOT, "%s %s %.2f %s", name, status, seconds,
            String.join(", ", run.notes).replaceAll("\\s+", " "));
    }

    private static void runOne(String name) {
        boolean counts = !LONG.contains(name);
        if (counts) {
            PLACES.acquireUninterruptibly();
        }
        System.out.println(line(name));
        if (counts) {
            PLACES.release();
        }
    }

    public static void main(String[] words) throws Exception {
        if (words.length == 2 && words[1].equals("member")) {
            Processor.member();
            return;
        }
        for (Map<String, Case> room : List.of(SendCases.ALL, BodyCases.ALL, ReadCases.ALL, EpochCases.ALL, RoadCases.ALL,
            RefusalCases.ALL, LifeCases.ALL)) {
            CASES.putAll(room);
        }
        List<Thread> all = new ArrayList<>();
        for (String name : words) {
            Thread thread = new Thread(() -> runOne(name), name);
            thread.start();
            all.add(thread);
        }
        long end = System.currentTimeMillis() + LIMIT_MS;
        for (Thread thread : all) {
            thread.join(Math.max(1, end - System.currentTimeMillis()));
            if (thread.isAlive()) {
                System.out.println("# no end of " + thread.getName());
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // whatever threads of the client are left
    }
}
