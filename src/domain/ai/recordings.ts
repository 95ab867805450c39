// Recorded prompts and answers of gateway calls: encrypted before they are stored, and readable only by site owners, with an audit log
// entry for each read.
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { toRfc3339 } from "#base/clock.ts";
import { type Encryption, UnsealError } from "#base/encryption.ts";
import { conflict, forbidden, notFound } from "#base/errors.ts";
import { uuid } from "#base/ids.ts";
import { findRecording, type RecordingRow } from "#db/chats/recordings.ts";
import { insertAudit } from "#db/reports/audit/audit.ts";
import type { GatewayRecording } from "#schema/ai/gateway.ts";
import type { UserCaller } from "#schema/users/caller.ts";
import type { RecordedTexts } from "#src/llm/gateway/recording.ts";
import { canReadRecordings } from "../access.ts";
import type { DomainContext } from "../context.ts";

const compress = promisify(gzip);
const decompress = promisify(gunzip);

const toSealContext = ({ id, user_id }: Pick<RecordingRow, "id" | "user_id">): string =>
  `model_recording:${user_id}:${id}`;

type Texts = Pick<RecordedTexts, "prompt" | "answer">;

/** Returns the row that stores these texts. */
export const sealRecording = async (
  encryption: Encryption,
  user_id: string,
  { prompt, answer, prompt_bytes, answer_bytes }: RecordedTexts,
  created_at: number,
): Promise<RecordingRow> => {
  const id = uuid();
  const texts: Texts = { prompt, answer };
  const packed = (await compress(JSON.stringify(texts))).toString("base64");
  const sealed_texts = encryption.seal(packed, toSealContext({ id, user_id }));
  return { id, user_id, sealed_texts, prompt_bytes, answer_bytes, created_at };
};

/**
 * Returns the prompt and answer of a call after the read has been written to the audit log. Rejects with 403 for everyone but owners, and
 * with 404 when there is no recording.
 */
export const readRecording = async (
  { store, clock, encryption }: DomainContext,
  caller: UserCaller,
  call_id: number,
): Promise<GatewayRecording> => {
  if (!canReadRecordings(caller)) throw forbidden("Only owners of the deployment can read recorded prompts.");
  const found = await store.get(findRecording({ key: call_id }));
  if (!found) throw notFound();
  const { recording, username } = found;
  const texts = await openTexts(encryption, recording);
  await store.commit([
    insertAudit({
      now: clock.now(),
      action: "open",
      resource_type: "ai_call",
      resource_id: recording.id,
      target: `${call_id} of ${username}`,
    }),
  ]);
  const { user_id, prompt_bytes, answer_bytes, created_at } = recording;
  return { call_id, user_id, username, ...texts, prompt_bytes, answer_bytes, created_at: toRfc3339(created_at) };
};

const openTexts = async (encryption: Encryption, row: RecordingRow): Promise<Texts> => {
  try {
    const packed = encryption.open(row.sealed_texts, toSealContext(row));
    return JSON.parse((await decompress(Buffer.from(packed, "base64"))).toString()) as Texts;
  } catch (error) {
    if (!(error instanceof UnsealError)) throw error;
    throw conflict(`The recording cannot be decrypted: ${error.message}.`);
  }
};
