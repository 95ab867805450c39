// A schema for compose files with exactly the members that deploy/compose uses. Names and types are those of the Compose specification.
import { type TProperties, type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const exactObject = <P extends TProperties>(properties: P) => t.Object(properties, { additionalProperties: false });
const optional = <S extends TSchema>(schema: S) => t.Optional(schema);
const Texts = t.Array(t.String(), { minItems: 1 });
const Duration = t.String({ pattern: "^([0-9]+(h|m|s|ms|us))+$" });

const Service = exactObject({
  image: t.String(),
  build: optional(t.String()),
  restart: t.Union([t.Literal("no"), t.Literal("always"), t.Literal("on-failure"), t.Literal("unless-stopped")]),
  hostname: optional(t.String()),
  ports: optional(t.Array(t.String({ pattern: "^[0-9]+:[0-9]+$" }))),
  environment: optional(t.Record(t.String({ pattern: "^[A-Z_]+$" }), t.String())),
  volumes: optional(t.Array(t.String({ pattern: "^[^:]+:/[^:]+(:ro)?$" }))),
  secrets: optional(Texts),
  stop_grace_period: optional(Duration),
  stop_signal: optional(t.String({ pattern: "^SIG[A-Z]+$" })),
  depends_on: optional(
    t.Union([
      Texts,
      t.Record(
        t.String(),
        exactObject({ condition: t.Union([t.Literal("service_started"), t.Literal("service_healthy")]) }),
      ),
    ]),
  ),
  healthcheck: optional(exactObject({ test: Texts, interval: Duration, timeout: Duration, retries: t.Integer() })),
});

const File = exactObject({
  services: t.Record(t.String(), Service),
  secrets: t.Record(t.String(), exactObject({ file: t.String() })),
  volumes: t.Record(t.String(), t.Null()),
});

/** Returns the problems of a compose file; empty if none. */
export const findComposeProblems = (file: unknown): string[] => {
  const problems = [...Value.Errors(File, file)].map(({ path, message }) => `${path}: ${message}`);
  if (problems.length > 0) return problems;
  const { services, secrets, volumes } = Value.Cast(File, file);
  const findMissing = (kind: string, names: readonly string[], defined: object): string[] =>
    names.filter((name) => !(name in defined)).map((name) => `${kind} ${name} does not exist`);
  return Object.values(services).flatMap((service) => [
    ...findMissing("secret", service.secrets ?? [], secrets),
    ...findMissing(
      "service",
      Array.isArray(service.depends_on) ? service.depends_on : Object.keys(service.depends_on ?? {}),
      services,
    ),
    ...findMissing(
      "volume",
      (service.volumes ?? []).map((text) => text.split(":")[0] ?? "").filter((name) => !name.startsWith(".")),
      volumes,
    ),
  ]);
};
