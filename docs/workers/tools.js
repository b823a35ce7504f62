// A worker in JavaScript, for `pintle serve`: see docs/workers.md.
const readline = require("node:readline");
let numbers = 0;

/** Ends a run of a call. The next run has the answer. */
class Question extends Error {
  constructor(question) {
    super(question.message);
    this.question = question;
  }
}

class Call {
  constructor({ call, answers, once }) {
    Object.assign(this, { id: call, answers, done: once });
  }

  write(members) {
    process.stdout.write(`${JSON.stringify({ call: this.id, ...members })}\n`);
  }

  async once(key, act) {
    if (!(key in this.done)) {
      this.done[key] = await act();
      this.write({ once: { key, value: this.done[key] } });
    }
    return this.done[key];
  }

  ask(key, message, schema) {
    if (!(key in this.answers)) throw new Question({ key, message, schema });
    return this.answers[key].content;
  }
}

const TOOLS = {
  echo: async (call, { text }) => text,
  count: async (call, { to }) => {
    for (let number = 1; number <= to; number++) {
      call.write({ progress: number, total: to, message: `${number} of ${to}` });
    }
    return { counted: to };
  },
  order: async (call, { what }) => {
    const number = await call.once("number", async () => ++numbers);
    const schema = { type: "object", properties: { pieces: { type: "integer" } }, required: ["pieces"] };
    const answer = call.ask("pieces", `How many pieces of ${what}?`, schema);
    return answer ? `Order ${number}: ${answer.pieces} ${what}` : "Nothing was ordered.";
  },
};

readline.createInterface({ input: process.stdin }).on("line", (text) => {
  const line = JSON.parse(text);
  if (!("tool" in line)) return;
  const call = new Call(line);
  const run = async () => ({ result: await TOOLS[line.tool](call, line.arguments) });
  const failed = (error) => (error.question ? { question: error.question } : { error: String(error) });
  run().catch(failed).then((end) => call.write(end));
});
