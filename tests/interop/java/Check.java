package interop;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Objects;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** What a case may find, and what it comes to when that is not a pass. */
final class Check {
    /** The client has no such thing; the text says what was looked for. */
    static final class Absent extends RuntimeException {
        private static final long serialVersionUID = 1;

        Absent(String text) {
            super(text);
        }
    }

    /** The client fails by its own fault; the text says how that is known. */
    static final class OwnFault extends RuntimeException {
        private static final long serialVersionUID = 1;

        OwnFault(String text) {
            super(text);
        }
    }

    static final class Skipped extends RuntimeException {
        private static final long serialVersionUID = 1;

        Skipped(String text) {
            super(text);
        }
    }

    private Check() {
    }

    static void check(boolean truth, String format, Object... args) {
        if (!truth) {
            throw new AssertionError(String.format(format, args));
        }
    }

    static void same(Object got, Object wanted, String what) {
        check(Objects.deepEquals(got, wanted), "%s: %.300s instead of %.300s", what, plain(got), plain(wanted));
    }

    private static String plain(Object value) {
        return value instanceof Object[] list ? Arrays.deepToString(list) : String.valueOf(value);
    }

    /** Waits for something to become true. */
    static void until(int seconds, String what, BooleanSupplier done) throws InterruptedException {
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (!done.getAsBoolean()) {
            check(System.nanoTime() < end, "%s: not within %d s", what, seconds);
            Thread.sleep(5);
        }
    }

    static double since(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    /** An error with all its causes in one text. */
    static String textOf(Throwable error) {
        StringBuilder all = new StringBuilder();
        for (Throwable each = error; each != null && each != each.getCause(); each = each.getCause()) {
            all.append(all.isEmpty() ? "" : ", by ").append(each);
        }
        return all.toString();
    }

    /** Proves that the client has no such thing, by the names of all that its types offer; fails when one speaks of it. */
    static Absent lacks(String pattern, Class<?>... types) {
        String text = Arrays.stream(types).map(Check::offers).collect(Collectors.joining("; "));
        check(!Pattern.compile("(?i)" + pattern).matcher(text).find(), "the client may have it now: %s", text);
        return new Absent("no name is like " + pattern + ": " + text);
    }

    private static String offers(Class<?> type) {
        TreeSet<String> names = new TreeSet<>();
        for (Method method : type.getMethods()) {
            if (method.getDeclaringClass() != Object.class) {
                names.add(method.getName());
            }
        }
        return type.getSimpleName() + " has only " + String.join(" ", names);
    }
}
