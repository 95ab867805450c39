// The effective settings and their sources, as shown by `slipway config show`, without secrets (rule DP-3).
import { describeSettings } from "#base/config/describe.ts";
import { formatDefault, toFlag, toVariableName } from "#base/config/setting.ts";
import { SERVER_SETTINGS } from "#base/config/settings.ts";
import type { DeploymentConfig } from "#schema/deployment/deployment-config.ts";
import type { DomainContext } from "../context.ts";

const SOURCES = { flag: "flag", env: "env", file: "yaml", default: "default" } as const;

export const listDeploymentSettings = ({
  config,
  sources,
}: Pick<DomainContext, "config" | "sources">): DeploymentConfig => {
  const shown = new Map(
    describeSettings(SERVER_SETTINGS, { config, sources: sources ?? ({} as NonNullable<typeof sources>) }).map(
      (row) => [row.key, row],
    ),
  );
  const options = Object.entries(SERVER_SETTINGS).map(([name, one]) => {
    const { value = null, from = "default", name: origin = "" } = shown.get(name) ?? {};
    return {
      name,
      description: one.help,
      flag: toFlag(name),
      env: toVariableName(name),
      yaml: one.file === false ? "" : name,
      default: formatDefault(one as never),
      value,
      value_source: sources === undefined ? ("" as const) : SOURCES[from as keyof typeof SOURCES],
      value_origin: sources === undefined ? "" : origin,
      hidden: "secret" in one && one.secret === true,
      group: { name: one.group },
    };
  });
  return { config: Object.fromEntries(options.map(({ name, value }) => [name, value])), options };
};
