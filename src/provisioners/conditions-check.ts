// Checks the conditions of a manifest: they may depend only on parameters further up, for values those can have, and conditional defaults
// must pass their parameter's validation (rule DY-4).
import type { Manifest, ManifestCondition, ManifestParameter } from "#schema/templates/manifest.ts";
import type { Finding } from "./finding.ts";
import { checkValue } from "./parameters.ts";

export const checkConditions = ({ parameters = [] }: Manifest): Finding[] =>
  parameters.flatMap((parameter, i) => {
    const above = new Map(parameters.slice(0, i).map((one) => [one.name, one]));
    const at = `/parameters/${i}`;
    return [
      ...checkOne(parameter.when, above, `${at}/when`),
      ...(parameter.options ?? []).flatMap(({ when }, n) => checkOne(when, above, `${at}/options/${n}/when`)),
      ...(parameter.defaults ?? []).flatMap(({ when, value }, n) => {
        const reason = checkValue(parameter, String(value));
        return [
          ...checkOne(when, above, `${at}/defaults/${n}/when`),
          ...(reason ? [{ pointer: `${at}/defaults/${n}/value`, reason }] : []),
        ];
      }),
    ];
  });

const checkOne = (
  condition: ManifestCondition | undefined,
  above: ReadonlyMap<string, ManifestParameter>,
  at: string,
): Finding[] =>
  Object.entries(condition ?? {}).flatMap(([name, wanted]) => {
    const parameter = above.get(name);
    const pointer = `${at}/${name}`;
    if (!parameter) return [{ pointer, reason: "is no parameter further up" }];
    const reasons = [wanted].flat().map((value) => checkValue(parameter, String(value)));
    return reasons.flatMap((reason) => (reason ? [{ pointer, reason: `can never be: ${reason}` }] : []));
  });
