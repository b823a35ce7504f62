"""A worker in Python, for `pintle serve`: see docs/workers.md."""
import itertools, json, sys, threading

lock, numbers = threading.Lock(), itertools.count(1)


class Question(Exception):
    """Ends a run of a call. The next run has the answer."""


class Call:
    def __init__(self, line):
        self.id, self.answers, self.done = line["call"], line["answers"], line["once"]

    def write(self, **members):
        with lock:
            print(json.dumps({"call": self.id, **members}, allow_nan=False), flush=True)

    def once(self, key, act):
        if key not in self.done:
            self.done[key] = act()
            self.write(once={"key": key, "value": self.done[key]})
        return self.done[key]

    def ask(self, key, message, schema):
        if key not in self.answers:
            raise Question({"key": key, "message": message, "schema": schema})
        return self.answers[key].get("content")


def count(call, to):
    for number in range(1, to + 1):
        call.write(progress=number, total=to, message=f"{number} of {to}")
    return {"counted": to}


def order(call, what):
    number = call.once("number", lambda: next(numbers))
    schema = {"type": "object", "properties": {"pieces": {"type": "integer"}}, "required": ["pieces"]}
    answer = call.ask("pieces", f"How many pieces of {what}?", schema)
    return f"Order {number}: {answer['pieces']} {what}" if answer else "Nothing was ordered."


TOOLS = {"echo": lambda call, text: text, "count": count, "order": order}


def run(call, line):
    try:
        call.write(result=TOOLS[line["tool"]](call, **line["arguments"]))
    except Question as question:
        call.write(question=question.args[0])
    except Exception as error:
        call.write(error=f"{type(error).__name__}: {error}")


for line in map(json.loads, sys.stdin):
    if "tool" in line:
        threading.Thread(target=run, args=(Call(line), line), daemon=True).start()
