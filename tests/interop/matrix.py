"""matrix.py - what the clients gave in the common cases, as text and as a part of docs/compatibility.md."""
import collections
import datetime
import os

Client = collections.namedtuple("Client", "name language version")
Client.program = lambda client, interop: os.path.join(interop, client.language, "run")
Cell = collections.namedtuple("Cell", "status seconds text")

WORST = ("fail", "skipped", "own-fault", "absent", "pass")  # the first of several runs counts
ITSELF = "itself"  # a row for what is wrong with a run and belongs to no case
BEGIN, END = "<!-- written by scripts/interop --write -->", "<!-- end of what scripts/interop wrote -->"
NEVER = (".NET", "`Azure.Messaging.EventHubs`",
         "never run: neither Debian nor the registries that the tests use have a .NET toolchain")


class Matrix:
    """Cells of cases and clients, one for each run."""

    def __init__(self, clients, titles):
        self.clients = clients
        self.titles = titles
        self.runs = collections.defaultdict(list)  # by case and client
        self.seconds = collections.defaultdict(list)  # by client
        self.notes = {}  # from status and text to [number, cases, clients]

    def add(self, client, cells, odd, seconds):
        """One run of a client: its cells, what else was wrong, and how long it took."""
        for case, cell in cells.items():
            self.runs[case, client].append(cell)
        for text in odd:
            self.runs[ITSELF, client].append(Cell("fail", 0, text))
        self.seconds[client].append(seconds)

    def cases(self):
        odd = [ITSELF] if any(case == ITSELF for case, _ in self.runs) else []
        return list(self.titles) + odd

    def worst(self, case, client):
        """Its status, the longest time, and the notes on it."""
        cells = self.runs.get((case, client), [])
        if not cells:
            return None, 0, []
        status = min((cell.status for cell in cells), key=WORST.index)
        such = [cell for cell in cells if cell.status == status]
        texts = [] if status == "pass" else [cell.text for cell in such][:None if status == "fail" else 1]
        return status, max(cell.seconds for cell in such), [self.note(status, text, case, client) for text in
                                                            dict.fromkeys(texts)]

    def note(self, status, text, case, client):
        number, cases, clients = self.notes.setdefault((status, text), [len(self.notes) + 1, {}, {}])
        cases[case] = clients[client.name] = True
        return number

    def often(self, case, client):
        """In how many of the runs it failed, when that is not all."""
        cells = self.runs[case, client]
        failed = sum(cell.status == "fail" for cell in cells)
        return "" if failed == len(cells) else " %d/%d" % (failed, len(cells))

    def sums(self):
        """Passed, failed and skipped cells of all runs."""
        cells = [cell.status for several in self.runs.values() for cell in several]
        return cells.count("pass"), cells.count("fail"), cells.count("skipped")

    def rows(self, shown):
        """For each case its name and shown(status, seconds, often, numbers of notes) for each client."""
        self.notes.clear()
        for case in self.cases():
            cells = []
            for client in self.clients:
                status, seconds, numbers = self.worst(case, client)
                often = self.often(case, client) if status == "fail" else ""
                cells.append(shown(status, seconds, often, ", ".join(map(str, numbers))) if status else "")
            yield case, cells

    def noted(self):
        for (status, text), (number, cases, clients) in self.notes.items():
            cases = "every case" if len(cases) == len(self.titles) > 1 else ", ".join(cases)
            yield number, status, ", ".join(clients), cases, text

    def text(self):
        def shown(status, seconds, often, numbers):
            return "pass %.2f" % seconds if status == "pass" else "%s%s [%s]" % (
                "FAIL" if status == "fail" else status, often, numbers)
        table = [("", [client.name for client in self.clients])] + list(self.rows(shown))
        table.append(("all, in seconds", ["%.1f" % max(self.seconds[client]) for client in self.clients]))
        first = max(len(row) for row, _ in table) + 2
        wide = [max(len(cells[n]) for _, cells in table) + 2 for n in range(len(self.clients))]
        lines = [row.ljust(first) + "".join(cell.ljust(wide[n]) for n, cell in enumerate(cells)) for row, cells in table]
        notes = ["[%d] %s, %s, %s: %s" % (number, status, clients, cases, text or "it did not say why")
                 for number, status, clients, cases, text in self.noted()]
        legend = ["", "The seconds are those of the slowest run. absent: the client has no such thing. own-fault: the client fails",
                  "by itself, whatever the service does. Both count neither as passed nor as failed."]
        return "\n".join(line.rstrip() for line in lines + [""] * bool(notes) + notes + legend)

    def markdown(self):
        def shown(status, seconds, often, numbers):
            word = {"fail": "**FAIL**", "own-fault": "own fault"}.get(status, status)
            return "%.1f s" % seconds if status == "pass" else "%s%s [%s]" % (word, often, numbers)
        runs = max(len(each) for each in self.seconds.values())
        names = [client.name for client in self.clients] + [NEVER[0]]
        lines = ["Tried on %s, %s." % (datetime.datetime.now(datetime.timezone.utc).date(),
                                       "once" if runs == 1 else "%d times in a row" % runs), "",
                 "| client | package |", "|---|---|"]
        lines += ["| %s | %s |" % (client.name, client.version) for client in self.clients]
        lines += ["| %s | %s, %s |" % NEVER, "", "| case | %s |" % " | ".join(names), "|---" * (len(names) + 1) + "|"]
        for case, cells in self.rows(shown):
            title = self.titles.get(case, "what is wrong besides its cases")
            lines.append("| `%s`: %s | %s | – |" % (case, title, " | ".join(cells)))
        notes = ["%d. %s, %s: %s" % (number, clients, cases, escape(text) or "it did not say why")
                 for number, status, clients, cases, text in self.noted()]
        return "\n".join(lines + [""] * bool(notes) + notes)


def escape(text):
    """So that nothing in it is taken for markup."""
    return "".join("\\" + letter if letter in "\\`*_<>[]|#" else letter for letter in text)


def write_document(path, matrix):
    """Puts the matrix between the two marks."""
    with open(path) as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit("interop: the marks are not in %s" % path)
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    with open(path, "w") as file:
        file.write(before + BEGIN + "\n\n" + matrix.markdown() + "\n\n" + END + after)
