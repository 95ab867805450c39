// Maps apps, scripts and variables of an agent (facts/terraform 3.11 to 3.13). Pure.
import { type Instance, toBlocks, toFlag, toNumber, toText } from "./document.ts";
import { type MappedApp, type MappedScript, MappingError } from "./mapped.ts";

export const toApp = ({ values }: Instance): MappedApp => {
  const slug = toText(values.slug);
  if (!/^[a-z0-9](?:-?[a-z0-9])*$/.test(slug))
    throw new MappingError(`The app's slug "${slug}" is invalid. Use lowercase letters, digits and single hyphens.`);
  const [check] = toBlocks(values.healthcheck);
  return {
    id: toText(values.id),
    slug,
    display_name: toText(values.display_name) || slug,
    url: toText(values.url),
    command: toText(values.command),
    external: toFlag(values.external),
    subdomain: toFlag(values.subdomain),
    hidden: toFlag(values.hidden),
    group: toText(values.group),
    icon: toText(values.icon),
    tooltip: toText(values.tooltip),
    order: toNumber(values.order),
    share: toText(values.share) || "owner",
    open_in: toText(values.open_in) || "slim-window",
    healthcheck: check
      ? { url: toText(check.url), interval: toNumber(check.interval), threshold: toNumber(check.threshold) }
      : null,
  };
};

export const toScript = ({ values }: Instance): MappedScript => ({
  display_name: toText(values.display_name),
  icon: toText(values.icon),
  script: toText(values.script),
  cron: toText(values.cron),
  run_on_start: toFlag(values.run_on_start),
  run_on_stop: toFlag(values.run_on_stop),
  start_blocks_login: toFlag(values.start_blocks_login),
  timeout: toNumber(values.timeout),
  log_path: toText(values.log_path),
});

/** Merges the variables of coder_env in the order of their addresses. The agent's own variables take precedence. Throws MappingError. */
export const collectEnv = (
  coderEnvs: readonly Instance[],
  agentEnv: Readonly<Record<string, string>>,
): Record<string, string> => {
  const env = new Map<string, string>();
  for (const { values, address } of coderEnvs) {
    const name = toText(values.name);
    const value = toText(values.value);
    const previous = env.get(name);
    switch (toText(values.merge_strategy) || "replace") {
      case "append":
        env.set(name, previous === undefined ? value : `${previous}:${value}`);
        break;
      case "prepend":
        env.set(name, previous === undefined ? value : `${value}:${previous}`);
        break;
      case "error":
        if (previous !== undefined)
          throw new MappingError(
            `${address}: the variable ${name} is set more than once, and its merge strategy is error.`,
          );
        env.set(name, value);
        break;
      default:
        env.set(name, value);
    }
  }
  return { ...Object.fromEntries(env), ...agentEnv };
};
