// Response schemas shared by many routes, for the OpenAPI document.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { Generic } from "#schema/generic.ts";

export { Generic };

/** Descriptions of the statuses, for the OpenAPI document. */
export const STATUS_DESCRIPTIONS: Record<number, string> = {
  101: "Switches to a WebSocket.",
  200: "Success.",
  201: "The resource was created.",
  204: "Success. The response has no body.",
  400: "The request is malformed or violates a rule. `validations` names the fields.",
  401: "Not signed in, or the token is invalid.",
  403: "The caller can see the resource but isn't allowed to do this.",
  404: "The resource doesn't exist, or the caller can't see it.",
  406: "The resource isn't ready yet.",
  409: "The request conflicts with the current state of the resource.",
  410: "The resource was deleted.",
  412: "A precondition failed, because the state of the resource has changed.",
  413: "The body is larger than the limit of this route.",
  415: "The content type is not supported.",
  426: "This endpoint only serves WebSockets.",
  429: "Too many requests. Wait a minute.",
  502: "A lifecycle hook returned no valid response. Nothing was changed.",
  503: "The server is overloaded or stopping. Retry the request.",
  504: "An upstream service did not respond in time.",
};

const errorSchemas = new Map<number, TSchema>();
const errorSchemaSets = new Map<string, Record<number, TSchema>>();

const getErrorSchema = (status: number): TSchema =>
  getOrCreate(errorSchemas, status, () =>
    t.Object(Generic.properties, { description: STATUS_DESCRIPTIONS[status] ?? "The request failed." }),
  );

const getOrCreate = <K, V>(map: Map<K, V>, key: K, make: () => V): V => {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
};

/** Returns a route's error responses for its `response` option: `...fails(400, 401, 404)`. Routes with the same errors share them. */
export const fails = <S extends number>(...statuses: S[]): Readonly<Record<S, TSchema>> =>
  getOrCreate(errorSchemaSets, statuses.join(), () =>
    Object.fromEntries(statuses.map((status) => [status, getErrorSchema(status)])),
  );

/** 204. */
export const NoContent = t.Void({ description: "Success. The response has no body." });

/** 200 without a body. */
export const Done = t.Void({ description: "Success. The response has no body." });

/** The document entry of a WebSocket: an upgrade has no JSON response. */
export const Upgraded = t.Void({ description: "Switches to a WebSocket." });
