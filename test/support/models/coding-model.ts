// A model that works on a small git repository: it clones the repository, reads, edits, runs the failing test, repairs the code and
// commits. It derives its next step only from the history, so a server may repeat calls. Used by chat stories.
import type { OutputItem } from "./model-frames.ts";
import { type ModelCall, ModelServer } from "./model-server.ts";

type Call = readonly [name: string, args: Record<string, unknown>];
type ChatMessage = { readonly role: string; readonly content?: unknown; readonly tool_calls?: unknown[] };

const DATES = "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z GIT_COMMITTER_DATE=2026-01-02T03:04:05Z";
const IDENTITY = "-c user.name=Slip -c user.email=slip@example.com -c commit.gpgsign=false";

/** Returns the model's steps in the folder `name`: the calls, and texts that their results must contain. */
const buildSteps = (
  origin: string,
  name: string,
): readonly { calls: readonly Call[]; expected: readonly string[] }[] => {
  const runCommand = (command: string): Call => ["execute", { command, workdir: name, timeout: "5m" }];
  const edit = (from: string, to: string): Call => [
    "edit_files",
    { files: [{ path: `${name}/sum.sh`, edits: [{ old_text: `$1 ${from} $2`, new_text: `$1 ${to} $2` }] }] },
  ];
  return [
    {
      calls: [["execute", { command: `git clone -q ${origin} ${name} && echo cloned`, timeout: "5m" }]],
      expected: ["cloned"],
    },
    {
      calls: [
        ["read_file", { path: `${name}/sum.sh` }],
        ["read_file", { path: `${name}/test.sh` }],
      ],
      expected: ["$1 - $2", "sum.sh 2 3"],
    },
    { calls: [edit("-", "*")], expected: ["+echo $(($1 * $2))"] },
    { calls: [runCommand("sh test.sh")], expected: ['"exit_code":1'] },
    { calls: [edit("*", "+")], expected: ["+echo $(($1 + $2))"] },
    { calls: [runCommand("sh test.sh")], expected: ['"exit_code":0'] },
    {
      calls: [runCommand(`${DATES} git ${IDENTITY} commit -qam 'Add instead' && echo committed`)],
      expected: ["committed"],
    },
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
  const git = `git ${IDENTITY}`;
  const script = `git init -q -b main && git add . && ${DATES} ${git} commit -qm 'Begin'`;
  const created = Bun.spawn(["sh", "-c", script], { cwd: path, stdout: "ignore", stderr: "pipe" });
  if ((await created.exited) !== 0) throw new Error(await new Response(created.stderr).text());
};

/** For the prompt "Fix NAME", the model does the work in the folder NAME. For "Wait" it runs `sleep 600`. */
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
    const promptIndex = history.findLastIndex(({ role }) => role === "user");
    const prompt = JSON.stringify(history[promptIndex]?.content ?? "");
    const answers = history.slice(promptIndex + 1);
    const step = answers.filter(({ tool_calls }) => (tool_calls ?? []).length > 0).length;
    await this.onStep(step);
    if (prompt.includes("Wait"))
      return sayAndCall(0, [["execute", { command: "echo $$; exec sleep 600", timeout: "1h" }]]);
    const name = /Fix ([\w-]+)/.exec(prompt)?.[1] ?? "nothing";
    const steps = buildSteps(this.#origin, name);
    this.#check(`${name}, step ${step}`, steps[step - 1]?.expected ?? [], answers);
    const nextStep = steps[step];
    return nextStep ? sayAndCall(step, nextStep.calls) : [{ text: "It adds " }, { text: "now." }, { finish: "stop" }];
  }

  #check(step: string, expected: readonly string[], history: readonly ChatMessage[]): void {
    const lastAnswerIndex = history.findLastIndex(({ role }) => role === "assistant");
    const results = history.slice(lastAnswerIndex + 1).map(({ content }) => String(content));
    if (results.length === expected.length && expected.every((text, index) => results[index]?.includes(text))) return;
    this.problems.push(`${step}: ${JSON.stringify(results)} instead of ${JSON.stringify(expected)}`);
  }
}

const sayAndCall = (step: number, calls: readonly Call[]): OutputItem[] => [
  { text: `Step ${step}. ` },
  ...calls.map(([name, args], index) => ({ call: { id: `s${step}c${index}`, name, args: JSON.stringify(args) } })),
  { finish: "tool_calls" },
];
