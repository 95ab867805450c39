// How a secret may be written once a program has handled it: as it is, in JSON and HCL, in addresses, in base64. Pure.

/** Bytes of a line of base64 as `base64` and PEM break it: 76 and 64 characters. */
const LINES_OF_BASE64 = [57, 48];

/** Every spelling that is looked for, the text itself among them; some may be the same. */
export const listSpellings = (secret: string): string[] => [
  secret,
  ...quotedSpellings(secret),
  ...addressSpellings(secret),
  ...base64Spellings(secret),
];

/** As in JSON, in JSON of Go, which writes three characters as code points, and in quoted texts of HCL. */
const quotedSpellings = (secret: string): string[] => {
  const json = JSON.stringify(secret).slice(1, -1);
  const go = json.replace(/[<>&]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);
  // A text of JSON inside of another one.
  const twice = JSON.stringify(json).slice(1, -1);
  return [json, go, twice, json.replace(/([$%])(?=\{)/g, "$1$1")];
};

/** What parts of an address need not encode: of a path and of a name with a password, as Go has it. */
const KEPT_IN_ADDRESSES = [/%(?:24|26|2B|3D|3A|40)/g, /%(?:24|26|2B|3D|2C|3B)/g];

/** Percent-encoded: what every program encodes, and all that may be; with blanks as in forms; digits in both cases. */
const addressSpellings = (secret: string): string[] => {
  const usual = encodeURIComponent(secret.toWellFormed());
  const strict = usual.replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  const lax = KEPT_IN_ADDRESSES.map((kept) => strict.replace(kept, decodeURIComponent));
  return [usual, strict, strict.replaceAll("%20", "+"), strict.replaceAll("%2F", "/"), ...lax].flatMap((one) => [
    one,
    one.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  ]);
};

/**
 * In base64, of both alphabets, whatever stands before and behind it in what is encoded: three bytes become four characters, so there are three
 * ways, and the characters at the borders, which neighbours share, are left out. A long one is also looked for line by line.
 */
const base64Spellings = (secret: string): string[] => {
  const bytes = Buffer.from(secret);
  const shifted = [0, 1, 2].map((before) => encoded(bytes, before));
  const lines = LINES_OF_BASE64.filter((most) => bytes.length > most).flatMap((most) =>
    Array.from({ length: Math.ceil(bytes.length / most) }, (_, at) =>
      encoded(bytes.subarray(at * most, (at + 1) * most), 0),
    ),
  );
  return [...shifted, ...lines].flatMap((one) => [one, one.replaceAll("+", "-").replaceAll("/", "_")]);
};

/** The characters that these bytes alone decide, with so many others before them. */
const encoded = (bytes: Uint8Array, before: number): string =>
  Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .slice(Math.ceil((before * 4) / 3), Math.floor(((before + bytes.length) * 4) / 3));
