// The layouts of WireGuard's four messages (facts/tailnet-peer 4). Words are little-endian.
export const TYPE = { initiation: 1, response: 2, cookie: 3, data: 4 } as const;

export const INITIATION = { bytes: 148, sender: 4, ephemeral: 8, static: 40, stamp: 88, mac1: 116 } as const;
export const RESPONSE = { bytes: 92, sender: 4, receiver: 8, ephemeral: 12, empty: 44, mac1: 60 } as const;
export const COOKIE = { bytes: 64, receiver: 4, nonce: 8, sealed: 32 } as const;
/** `body` is the ciphertext, followed by a tag of 16 bytes. */
export const DATA = { receiver: 4, counter: 8, body: 16 } as const;

/** Returns the type of a message by its first four bytes and its length; undefined for data that is not a message. */
export const findMessageType = (message: Uint8Array): number | undefined => {
  const { byteLength: length } = message;
  if (length < 32 || message[1] !== 0 || message[2] !== 0 || message[3] !== 0) return undefined;
  const type = message[0] as number;
  if (type === TYPE.data) return length % 16 === 0 ? type : undefined;
  const expectedLength = {
    [TYPE.initiation]: INITIATION.bytes,
    [TYPE.response]: RESPONSE.bytes,
    [TYPE.cookie]: COOKIE.bytes,
  }[type];
  return expectedLength === length ? type : undefined;
};

export const toView = (message: Uint8Array): DataView =>
  new DataView(message.buffer, message.byteOffset, message.byteLength);

/** Returns a copy of a part of a message. */
export const copyPart = (message: Uint8Array, at: number, length: number): Uint8Array => message.slice(at, at + length);
