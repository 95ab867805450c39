// Maps apps, scripts and variables of an agent (facts/terraform 3.11 to 3.13). Pure.
import { blocks, flag, type Instance, number, text } from "./document.ts";
import { type MappedApp, type MappedScript, MappingError } from "./mapped.ts";

export const toApp = ({ values }: Instance): MappedApp => {
  const slug = text(values.slug);
  if (!/^[a-z0-9](?:-?[a-z0-9])*$/.test(slug))
    throw new MappingError(`The app ${slug} has a slug that cannot be: small letters, digits and single hyphens.`);
  const [check] = blocks(values.healthcheck);
  return {
    id: text(values.id),
    slug,
    display_name: text(values.display_name) || slug,
    url: text(values.url),
    command: text(values.command),
    external: flag(values.external),
    subdomain: flag(values.subdomain),
    hidden: flag(values.hidden),
    group: text(values.group),
    icon: text(values.icon),
    tooltip: text(values.tooltip),
    order: number(values.order),
    share: text(values.share) || "owner",
    open_in: text(values.open_in) || "slim-window",
    healthcheck: check
      ? { url: text(check.url), interval: number(check.interval), threshold: number(check.threshold) }
      : null,
  };
};

export const toScript = ({ values }: Instance): MappedScript => ({
  display_name: text(values.display_name),
  icon: text(values.icon),
  script: text(values.script),
  cron: text(values.cron),
  run_on_start: flag(values.run_on_start),
  run_on_stop: flag(values.run_on_stop),
  start_blocks_login: flag(values.start_blocks_login),
  timeout: number(values.timeout),
  log_path: text(values.log_path),
});

/** Returns the variables of coder_env in the order of their addresses, overridden by the agent's own. Throws MappingError. */
export const collectEnv = (
  given: readonly Instance[],
  own: Readonly<Record<string, string>>,
): Record<string, string> => {
  const env = new Map<string, string>();
  for (const { values, address } of given) {
    const name = text(values.name);
    const value = text(values.value);
    const before = env.get(name);
    switch (text(values.merge_strategy) || "replace") {
      case "append":
        env.set(name, before === undefined ? value : `${before}:${value}`);
        break;
      case "prepend":
        env.set(name, before === undefined ? value : `${value}:${before}`);
        break;
      case "error":
        if (before !== undefined)
          throw new MappingError(
            `${address}: the variable ${name} is set more than once, and its merge strategy is error.`,
          );
        env.set(name, value);
        break;
      default:
        env.set(name, value);
    }
  }
  return { ...Object.fromEntries(env), ...own };
};
