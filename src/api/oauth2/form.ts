// Parses requests to the token endpoint: a form with each field at most once (RFC 6749 3.2), and the client's credentials.
import type { ClientProof } from "#domain/oauth2/clients.ts";
import { OAuth2Problem } from "#domain/oauth2/problem.ts";
import { readCountedBytes } from "../http/body/body.ts";

export const MAX_FORM_BYTES = 65_536;

export type Form = ReadonlyMap<string, string>;

/** Parses the form. Throws `invalid_request` or 413. */
export const readForm = async (request: Request): Promise<Form> => {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
    throw new OAuth2Problem("invalid_request", "Send a form: application/x-www-form-urlencoded.");
  }
  const text = new TextDecoder().decode(await readCountedBytes(request, MAX_FORM_BYTES));
  const form = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (form.has(name)) throw new OAuth2Problem("invalid_request", "A field was sent twice.");
    form.set(name, value);
  }
  return form;
};

/** Returns the field; throws `invalid_request` when it is missing or empty. */
export const getField = (form: Form, name: string): string => {
  const value = form.get(name);
  if (!value) throw new OAuth2Problem("invalid_request", `${name} is missing.`);
  return value;
};

/** Returns the client's credentials, sent in exactly one way. Throws `invalid_request` or `invalid_client`. */
export const parseProof = (request: Request, form: Form): ClientProof => {
  const header = request.headers.get("authorization") ?? "";
  if (!/^basic /i.test(header)) return { client_id: getField(form, "client_id"), secret: form.get("client_secret") };
  if (form.has("client_secret")) throw new OAuth2Problem("invalid_request", "Send the secret in one way only.");
  const [client_id = "", ...rest] = Buffer.from(header.slice(6).trim(), "base64").toString().split(":");
  const proof = { client_id: decodeField(client_id), secret: decodeField(rest.join(":")) };
  const formClientId = form.get("client_id");
  if (formClientId !== undefined && formClientId !== proof.client_id) {
    throw new OAuth2Problem("invalid_request", "client_id is another than that of the header.");
  }
  return proof;
};

/** Decodes a client ID or secret, which are form-encoded in the header (RFC 6749 2.3.1). */
const decodeField = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new OAuth2Problem("invalid_client", "The header cannot be read.");
  }
};
