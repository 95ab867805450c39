// Typed calls: turns generated service descriptors into a router of handlers (server) and an object of methods (daemon).
// Independent of any particular service. A request that cannot be parsed, or has too many fields, is answered with an error.
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { GenService, GenServiceMethods } from "@bufbuild/protobuf/codegenv2";
import { type BidiCall, call, callBidi, callServerStream, type Opener } from "./drpc/client.ts";
import { RpcError } from "./drpc/frame.ts";
import type { CallContext, Handler, Router } from "./drpc/server.ts";
import { hasMoreFields } from "./field-count.ts";

/** Any generated service. */
type Service = GenService<GenServiceMethods>;
type Method = Pick<DescMethod, "input" | "output" | "methodKind">;
type Input<M extends Method> = MessageShape<M["input"]>;
type InputInit<M extends Method> = MessageInitShape<M["input"]>;
type Output<M extends Method> = MessageShape<M["output"]>;
type OutputInit<M extends Method> = MessageInitShape<M["output"]>;

type HandlerOf<M extends Method> = M["methodKind"] extends "unary"
  ? (request: Input<M>, call: CallContext) => Promise<OutputInit<M>> | OutputInit<M>
  : M["methodKind"] extends "server_streaming"
    ? (request: Input<M>, call: CallContext) => AsyncIterable<OutputInit<M>>
    : M["methodKind"] extends "bidi_streaming"
      ? (requests: AsyncIterable<Input<M>>, call: CallContext) => AsyncIterable<OutputInit<M>>
      : never;

/** One handler per method, by its local name (`getManifest`). Responses are plain objects or messages. */
export type Handlers<S extends Service> = { [K in keyof S["method"]]: HandlerOf<S["method"][K]> };

/** A typed bidirectional call; see BidiCall. */
export interface TypedBidiCall<M extends Method> extends AsyncIterable<Output<M>> {
  send(request: InputInit<M>): Promise<void>;
  closeSend(): Promise<void>;
  cancel(reason?: string): void;
}

type CallerOf<M extends Method> = M["methodKind"] extends "unary"
  ? (request: InputInit<M>, signal?: AbortSignal) => Promise<Output<M>>
  : M["methodKind"] extends "server_streaming"
    ? (request: InputInit<M>, signal?: AbortSignal) => AsyncGenerator<Output<M>, void, undefined>
    : M["methodKind"] extends "bidi_streaming"
      ? (signal?: AbortSignal) => Promise<TypedBidiCall<M>>
      : never;

/** One function per method, by its local name. */
export type Client<S extends Service> = { [K in keyof S["method"]]: CallerOf<S["method"][K]> };

/** Returns the path of a method on the wire: `/package.Service/Method`. */
export const toMethodPath = (method: DescMethod): string => `/${method.parent.typeName}/${method.name}`;

/** Maximum number of fields of a request, by the local name of its method, for methods with a higher limit than `MAX_FIELDS`. */
type MaxFields<S extends Service> = { readonly [K in keyof S["method"]]?: number };

/** A limit, because decoding delays all other work of the process: 20,000 fields take about 20 ms and 10 MiB. */
const MAX_FIELDS = 20_000;

/** Returns the handlers by path, for `serve`. Methods without a handler return code 12. For several services: `mergeRouters`. */
export const createRouter = <S extends Service>(
  service: S,
  handlers: Partial<Handlers<S>>,
  maxFields: MaxFields<S> = {},
): Router => {
  const router = new Map<string, Handler>();
  for (const method of Object.values(service.method)) {
    const run: unknown = handlers[method.localName];
    const fieldLimit = maxFields[method.localName as keyof S["method"]] ?? MAX_FIELDS;
    if (run !== undefined) router.set(toMethodPath(method), toBytesHandler(method, run, fieldLimit));
  }
  return router;
};

/** Merges the routers of several services. */
export const mergeRouters = (...routers: readonly Router[]): Router =>
  new Map(routers.flatMap((router) => [...router]));

/** Returns typed methods over a session. Unary ones throw RpcError for the server's error, WireError if the connection broke. */
export const createClient = <S extends Service>(service: S, session: Opener): Client<S> => {
  const methods: Record<string, unknown> = {};
  for (const method of Object.values(service.method)) methods[method.localName] = createCaller(method, session);
  return methods as Client<S>;
};

// Here a method is known only at run time, so these types describe the handlers without the generic types above.
type Init = MessageInitShape<DescMessage>;
type Shape = MessageShape<DescMessage>;
type UnaryHandler = (request: Shape, call: CallContext) => Promise<Init> | Init;
type ServerStreamHandler = (request: Shape, call: CallContext) => AsyncIterable<Init>;
type BidiHandler = (requests: AsyncIterable<Shape>, call: CallContext) => AsyncIterable<Init>;

const toBytesHandler = (method: DescMethod, run: unknown, fieldLimit: number): Handler => {
  const { input, output } = method;
  const decode = (bytes: Uint8Array) => decodeRequest(input, bytes, fieldLimit);
  switch (method.methodKind) {
    case "unary":
      return {
        kind: "unary",
        run: async (request, call) => encode(output, await (run as UnaryHandler)(await decode(request), call)),
      };
    case "server_streaming":
      return {
        kind: "server_streaming",
        run: async function* (request, call) {
          const replies = (run as ServerStreamHandler)(await decode(request), call);
          yield* mapItems(replies, (item) => encode(output, item));
        },
      };
    case "bidi_streaming":
      return {
        kind: "bidi_streaming",
        run: (requests, call) =>
          mapItems((run as BidiHandler)(mapItems(requests, decode), call), (item) => encode(output, item)),
      };
    case "client_streaming":
      throw new Error("No service here streams from the client only.");
  }
};

const createCaller = (method: DescMethod, session: Opener): unknown => {
  const { input, output } = method;
  const path = toMethodPath(method);
  switch (method.methodKind) {
    case "unary":
      return async (request: Init, signal?: AbortSignal) =>
        fromBinary(output, await call(session, path, encode(input, request), signal));
    case "server_streaming":
      return (request: Init, signal?: AbortSignal) =>
        mapItems(callServerStream(session, path, encode(input, request), signal), (item) => fromBinary(output, item));
    case "bidi_streaming":
      return async (signal?: AbortSignal) => toTypedBidi(method, await callBidi(session, path, signal));
    case "client_streaming":
      throw new Error("No service here streams from the client only.");
  }
};

const toTypedBidi = ({ input, output }: DescMethod, bidi: BidiCall): TypedBidiCall<DescMethod> => ({
  send: (request) => bidi.send(encode(input, request)),
  closeSend: () => bidi.closeSend(),
  cancel: (reason) => bidi.cancel(reason),
  [Symbol.asyncIterator]: () => mapItems(bidi, (item) => fromBinary(output, item)),
});

const encode = (schema: DescMessage, message: Init): Uint8Array => toBinary(schema, create(schema, message));

/** Larger requests are decoded one at a time, each in its own turn of the event loop. */
const LARGE_MESSAGE_BYTES = 16 * 1024;
let lastDecoding: Promise<void> = Promise.resolve();
const waitForDecodingTurn = (): Promise<void> => {
  lastDecoding = lastDecoding.then(() => new Promise<void>((resolve) => setImmediate(resolve)));
  return lastDecoding;
};

const decodeRequest = async (schema: DescMessage, bytes: Uint8Array, fieldLimit: number): Promise<Shape> => {
  if (bytes.byteLength > LARGE_MESSAGE_BYTES) await waitForDecodingTurn();
  if (hasMoreFields(schema, bytes, fieldLimit))
    throw new RpcError(0, `The request has more than ${fieldLimit} fields.`);
  try {
    return fromBinary(schema, bytes);
  } catch {
    throw new RpcError(0, `The request is not a ${schema.typeName}.`);
  }
};

async function* mapItems<T, U>(
  source: AsyncIterable<T>,
  change: (item: T) => U | Promise<U>,
): AsyncGenerator<U, void, undefined> {
  for await (const item of source) yield await change(item);
}
