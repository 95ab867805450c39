// A model that works on a small git repository: clones it, reads, edits, runs the tests, sees them fail, repairs the code and commits. It
// derives its next step only from the history, so a server may repeat calls. Used by chat stories.
import type { OutputItem } from "./model-frames.ts";
import { type ModelCall, ModelServer } from "./model-server.ts";

type Call = readonly [name: string, args: Record<string, unknown>];
type ChatMessage = { readonly role: string; readonly content?: unknown; readonly tool_calls?: unknown[] };

const DATES = "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z GIT_COMMITTER_DATE=2026-01-02T03:04:05Z";
const ME = "-c user.name=Slip -c user.email=slip@example.com -c commit.gpgsign=false";

/** Returns its steps in the folder `name`: the calls, and what the results must contain. */
const buildSteps = (origin: string, name: string): readonly { calls: readonly Call[]; sees: readonly string[] }[] => {
  const runCommand = (command: string): Call => ["execute", { command, workdir: name, timeout: "5m" }];
  const edit = (from: string, to: string): Call => [
    "edit_files",
    { files: [{ path: `${name}/sum.sh`, edits: [{ old_text: `$1 ${from} $2`, new_text: `$1 ${to} $2` }] }] },
  ];
  return [
    {
      calls: [["execute", { command: `git clone -q ${origin} ${name} && echo cloned`, timeout: "5m" }]],
      sees: ["cloned"],
    },
    {
      calls: [
        ["read_file", { path: `${name}/sum.sh` }],
        ["read_file", { path: `${name}/test.sh` }],
      ],
      sees: ["$1 - $2", "sum.sh 2 3"],
    },
    { calls: [edit("-", "*")], sees: ["+echo $(($1 * $2))"] },
    { calls: [runCommand("sh test.sh")], sees: ['"exit_code":1'] },
    { calls: [edit("*", "+")], sees: ["+echo $(($1 + $2))"] },
    { calls: [runCommand("sh test.sh")], sees: ['"exit_code":0'] },
    { calls: [runCommand(`${DATES} git ${ME} commit -qam 'Add instead' && echo committed`)], sees: ["committed"] },
  ];
};

/** Prints progress, and records each run in a file. */
const TEST = `for i in 1 2 3 4 5; do echo "looking $i"; sleep 0.02; done
echo run >> ../runs-$(basename "$PWD")
[ "$(sh sum.sh 2 3)" = 5 ] && echo passed && exit 0
echo failed
exit 1
`;

/** Creates the repository that the model clones: a function that should add but subtracts, and its test. */
export const makeOrigin = async (path: string): Promise<void> => {
  await Bun.write(`${path}/sum.sh`, "echo $(($1 - $2))\n");
  await Bun.write(`${path}/test.sh`, TEST);
  const git = `git ${ME}`;
  const script = `git init -q -b main && git add . && ${DATES} ${git} commit -qm 'Begin'`;
  const created = Bun.spawn(["sh", "-c", script], { cwd: path, stdout: "ignore", stderr: "pipe" });
  if ((await created.exited) !== 0) throw new Error(await new Response(created.stderr).text());
};

/** For "Fix <name>" it does the work in the folder of that name; for "Wait" it runs `sleep 600`. */
export class CodingModel implements AsyncDisposable {
  readonly server: ModelServer;
  readonly problems: string[] = [];
  /** Called before the nth step (from 0) is answered; may delay the answer. */
  onStep: (step: number) => unknown = () => {};
  readonly #origin: string;

  private constructor(server: ModelServer, origin: string) {
    this.server = server;
    this.#origin = origin;
    void server.answerAll((call) => void this.#answer(call).then((items) => call.say(...items).end()));
  }

  static async start(origin: string): Promise<CodingModel> {
    return new CodingModel(await ModelServer.start(), origin);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server[Symbol.asyncDispose]();
  }

  async #answer({ body }: ModelCall): Promise<OutputItem[]> {
    const history = (body.messages ?? []) as ChatMessage[];
    const requested = history.findLastIndex(({ role }) => role === "user");
    const words = JSON.stringify(history[requested]?.content ?? "");
    const since = history.slice(requested + 1);
    const step = since.filter(({ tool_calls }) => (tool_calls ?? []).length > 0).length;
    await this.onStep(step);
    if (words.includes("Wait")) return saying(0, [["execute", { command: "echo $$; exec sleep 600", timeout: "1h" }]]);
    const name = /Fix ([\w-]+)/.exec(words)?.[1] ?? "nothing";
    const steps = buildSteps(this.#origin, name);
    this.#check(`${name}, step ${step}`, steps[step - 1]?.sees ?? [], since);
    const next = steps[step];
    return next ? saying(step, next.calls) : [{ text: "It adds " }, { text: "now." }, { finish: "stop" }];
  }

  #check(where: string, sees: readonly string[], since: readonly ChatMessage[]): void {
    const last = since.findLastIndex(({ role }) => role === "assistant");
    const answers = since.slice(last + 1).map(({ content }) => String(content));
    if (answers.length === sees.length && sees.every((words, index) => answers[index]?.includes(words))) return;
    this.problems.push(`${where}: ${JSON.stringify(answers)} instead of ${JSON.stringify(sees)}`);
  }
}

const saying = (step: number, calls: readonly Call[]): OutputItem[] => [
  { text: `Step ${step}. ` },
  ...calls.map(([name, args], index) => ({ call: { id: `s${step}c${index}`, name, args: JSON.stringify(args) } })),
  { finish: "tool_calls" },
];
