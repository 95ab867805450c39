// `slipway doctor [--quick] [--json] [settings]`: looks at everything a server needs on this machine, and says what is wrong in words.
// Changes nothing; works beside a running server.
import { loadConfig } from "#base/config.ts";
import { UsageError } from "#base/usage-error.ts";
import { VERSION } from "#base/version.ts";
import { examine, type Finding } from "./doctor-checks.ts";
import { asTable } from "./options.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "./verb.ts";

export const run: RunVerb = async (input) => {
  const { given: json, rest } = takeSwitch(input.argv, "--json");
  const { given: quick, rest: argv } = takeSwitch(rest, "--quick");
  const findings = await findingsOf({ ...input, argv }, quick);
  const ok = findings.every(({ status }) => status !== "wrong");
  if (json) input.print(JSON.stringify({ ok, version: VERSION, findings }));
  else {
    const rows = findings.map(({ name, status, detail }) => [SHOWN[status], name, detail]);
    input.print(asTable(["", "WHAT", "FOUND"], rows));
  }
  return ok ? EXIT.ok : EXIT.failed;
};

const SHOWN: Record<Finding["status"], string> = { ok: "ok", warn: "WARN", wrong: "WRONG" };

/** Also when the settings cannot be used: then that is what is found. */
export const findingsOf = async (input: VerbInput, quick: boolean): Promise<Finding[]> => {
  try {
    const { config } = loadConfig(input);
    return [{ name: "settings", status: "ok", detail: "can be used" }, ...(await examine(config, input.clock, quick))];
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return error.problems.map(({ name, from, detail }) => ({
      name: "settings",
      status: "wrong",
      detail: `${name} (${from}): ${detail}`,
    }));
  }
};
