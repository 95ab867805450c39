// `slipway doctor [--quick] [--json] [settings]`: checks everything that a server needs on this machine and describes problems. Changes
// nothing; can run next to a server.
import { statSync } from "node:fs";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import { loadConfig } from "#base/config.ts";
import { UsageError } from "#base/usage-error.ts";
import { VERSION } from "#base/version.ts";
import { examine } from "#domain/health/checks.ts";
import type { Finding } from "#domain/health/finding.ts";
import { formatTable } from "../options.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
  const { isGiven: quick, rest: argv } = takeSwitch(rest, "--quick");
  const findings = await collectFindings({ ...input, argv }, quick);
  const ok = findings.every(({ status }) => status !== "wrong");
  if (json) input.print(JSON.stringify({ ok, version: VERSION, findings }));
  else {
    const rows = findings.map(({ name, status, detail }) => [STATUS_LABELS[status], name, detail]);
    input.print(formatTable(["", "CHECK", "RESULT"], rows));
  }
  return ok ? EXIT.ok : EXIT.failed;
};

/** A file with secrets must not be readable by everyone; a group may read it, such as that of a service. */
const checkSettingsFile = ({ config, sources }: ReturnType<typeof loadConfig>): Finding => {
  const name = "settings";
  const hasSecrets = Object.entries(SERVER_SETTINGS).some(
    ([key, one]) => "secret" in one && one.secret && sources[key as keyof typeof sources].from === "file",
  );
  const mode = (hasSecrets && statSync(config.config ?? "", { throwIfNoEntry: false })?.mode) || 0;
  if ((mode & 0o007) === 0) return { name, status: "ok", detail: "can be used" };
  return {
    name,
    status: "warn",
    detail: `all users of this machine can read the secrets in ${config.config}; run chmod 640`,
  };
};

const STATUS_LABELS: Record<Finding["status"], string> = { ok: "ok", warn: "WARN", wrong: "WRONG" };

/** Invalid settings are reported as a finding. */
export const collectFindings = async (input: VerbInput, quick: boolean): Promise<Finding[]> => {
  try {
    const loaded = loadConfig(input);
    return [checkSettingsFile(loaded), ...(await examine(loaded.config, input.clock, quick, input.env))];
  } catch (error) {
    // An unknown word or flag is a usage error. An invalid value is a finding.
    if (!(error instanceof UsageError) || error.problems.some(isUsageProblem)) throw error;
    return error.problems.map(({ name, from, detail }) => ({
      name: "settings",
      status: "wrong",
      detail: `${name} (${from}): ${detail}`,
    }));
  }
};

const isUsageProblem = ({ from, detail }: UsageError["problems"][number]): boolean =>
  from === "command line" && /^(unexpected argument|unknown setting)/.test(detail);
