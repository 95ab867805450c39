// An SFTP session on an SSH channel. Answers each request before reading the next, so a client that does not read delays only itself.
// ssh2's own implementation leaves the channel open at the client's end, for which `sftp -b` waits forever. [WN-5]
import type ssh2 from "ssh2";
import { log } from "#base/log.ts";
import { ANSWER, encodePacket, Fields, PacketReader, REQUEST } from "./codec.ts";
import { Handles } from "./handles.ts";
import { EXTENSION_NAMES, handleRequest, type SftpRoot } from "./operations.ts";

const SFTP_VERSION = 3;
const FAILED_EXIT_CODE = 1;

/** Serves until the client ends; never rejects. */
export const serveSftp = async (channel: ssh2.ServerChannel, root: SftpRoot): Promise<void> => {
  const handles = new Handles();
  const reader = new PacketReader();
  channel.on("error", () => {});
  let code = 0;
  try {
    for await (const chunk of readChunks(channel)) {
      for (const packet of reader.push(chunk)) {
        const fields = new Fields(packet);
        const type = fields.byte();
        const answer = type === REQUEST.init ? toVersionReply() : await handleRequest(type, fields, { handles, root });
        if (!channel.write(answer)) await waitForDrain(channel);
      }
    }
  } catch (error) {
    log("daemon").debug("an sftp session broke: {error}", { error });
    code = FAILED_EXIT_CODE;
  } finally {
    await handles.closeAll();
  }
  if (channel.destroyed) return;
  channel.exit(code);
  channel.end();
};

const toVersionReply = (): Buffer =>
  encodePacket(
    ANSWER.version,
    { word: SFTP_VERSION },
    ...EXTENSION_NAMES.flatMap((name) => [{ text: name }, { text: "1" }]),
  );

/** The client's end of input must not close the channel: the exit status is still to be sent. */
const readChunks = (channel: ssh2.ServerChannel): AsyncIterable<Buffer> => channel.iterator({ destroyOnReturn: false });

const waitForDrain = (channel: ssh2.ServerChannel): Promise<void> =>
  new Promise((resolve) => {
    channel.once("drain", resolve);
    channel.once("close", resolve);
  });
