// The protocol of a terminal's stream (facts/wire 4.1): a 2-byte little-endian length and a JSON object that identifies the terminal; after
// that, JSON objects with input from the client, and raw output from the agent.
import { parseJson } from "#base/json/read.ts";
import type { Lookahead } from "./lookahead.ts";
import { WireError } from "./wire-error.ts";

/** Identifies a terminal, and says how to start a new one. The member names are those of official agents. */
export type TerminalRequest = {
  ID: string;
  Height: number;
  Width: number;
  Command: string;
  Container: string;
  ContainerUser: string;
  BackendType: string;
};

/** One object from a client: keystrokes, a new size, or both. */
export type TerminalInput = { data?: string; height?: number; width?: number };

/** Maximum size of one input object: a large paste. */
export const MAX_INPUT = 1024 * 1024;
/** Maximum number of rows or columns. */
export const MAX_SIDE = 4_096;

export const encodeTerminalRequest = (request: TerminalRequest): Uint8Array => {
  const text = new TextEncoder().encode(JSON.stringify(request));
  if (text.byteLength > 0xffff) throw new WireError("too_large", "The command is too long.");
  const bytes = new Uint8Array(2 + text.byteLength);
  bytes.set([text.byteLength & 255, text.byteLength >> 8]);
  bytes.set(text, 2);
  return bytes;
};

/** Reads the object that identifies a terminal. Throws WireError `protocol` if it is invalid. */
export const readTerminalRequest = async (stream: Lookahead): Promise<TerminalRequest> => {
  const [low, high] = (await stream.readExactly(2)) as unknown as [number, number];
  const text = new TextDecoder().decode(await stream.readExactly(high * 256 + low));
  let request: Partial<Record<keyof TerminalRequest, unknown>>;
  try {
    request = parseJson(text) as typeof request;
  } catch {
    throw new WireError("protocol", "The request for a terminal is not JSON.");
  }
  const toText = (value: unknown): string => (typeof value === "string" ? value : "");
  if (toText(request?.ID) === "") throw new WireError("protocol", "The request for a terminal names none.");
  return {
    ID: toText(request.ID),
    Height: toDimension(request.Height) ?? 80,
    Width: toDimension(request.Width) ?? 80,
    Command: toText(request.Command),
    Container: toText(request.Container),
    ContainerUser: toText(request.ContainerUser),
    BackendType: toText(request.BackendType),
  };
};

/** Returns the valid members of an input object. Others are ignored, as in official agents. */
export const parseTerminalInput = (input: Record<string, unknown>): TerminalInput => ({
  ...(typeof input.data === "string" ? { data: input.data } : {}),
  ...toSize(toDimension(input.height), toDimension(input.width)),
});

const toSize = (height: number | undefined, width: number | undefined) => (height && width ? { height, width } : {});

const toDimension = (value: unknown): number | undefined =>
  typeof value === "number" && value >= 1 ? Math.min(Math.floor(value), MAX_SIDE) : undefined;
