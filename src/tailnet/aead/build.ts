// `bun run build:aead`: writes code.ts, which contains ChaCha20-Poly1305 (RFC 8439) for data packets as WebAssembly with SIMD. Bun has no
// native implementation, and the JavaScript one takes six times as long for packets of 1.2 kB. The program is AssemblyScript with fixed
// memory locations: ChaCha20 in four lanes, Poly1305 in five limbs of 26 bits, no additional data. This script unrolls the loops, because
// the compiler does not.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import asc from "assemblyscript/asc";

/** Returns the code of one quarter round, for four blocks at the same time. */
const buildQuarterRound = (a: number, b: number, c: number, d: number): string => `
    x${a} = i32x4.add(x${a}, x${b}); x${d} = v128.xor(x${d}, x${a}); x${d} = v128.shuffle<u8>(x${d}, x${d}, 2,3,0,1, 6,7,4,5, 10,11,8,9, 14,15,12,13);
    x${c} = i32x4.add(x${c}, x${d}); x${b} = v128.xor(x${b}, x${c}); x${b} = v128.or(i32x4.shl(x${b}, 12), i32x4.shr_u(x${b}, 20));
    x${a} = i32x4.add(x${a}, x${b}); x${d} = v128.xor(x${d}, x${a}); x${d} = v128.shuffle<u8>(x${d}, x${d}, 3,0,1,2, 7,4,5,6, 11,8,9,10, 15,12,13,14);
    x${c} = i32x4.add(x${c}, x${d}); x${b} = v128.xor(x${b}, x${c}); x${b} = v128.or(i32x4.shl(x${b}, 7), i32x4.shr_u(x${b}, 25));`;
const rows = [0, 1, 2, 3];
/** Returns the code that transposes four words of four blocks and stores them. */
const buildStore = (r: number): string => `
    t0 = v128.shuffle<u32>(x${4 * r}, x${4 * r + 1}, 0, 4, 1, 5); t1 = v128.shuffle<u32>(x${4 * r}, x${4 * r + 1}, 2, 6, 3, 7);
    t2 = v128.shuffle<u32>(x${4 * r + 2}, x${4 * r + 3}, 0, 4, 1, 5); t3 = v128.shuffle<u32>(x${4 * r + 2}, x${4 * r + 3}, 2, 6, 3, 7);
    v128.store(to + ${16 * r}, v128.shuffle<u64>(t0, t2, 0, 2)); v128.store(to + ${64 + 16 * r}, v128.shuffle<u64>(t0, t2, 1, 3));
    v128.store(to + ${128 + 16 * r}, v128.shuffle<u64>(t1, t3, 0, 2)); v128.store(to + ${192 + 16 * r}, v128.shuffle<u64>(t1, t3, 1, 3));`;
const WORD_INDEXES = [...Array(16).keys()];

/** The program, in AssemblyScript. */
const program = `
// 0: key (32), 32: nonce (12), 48: tag (16). 1024: data. STREAM: key stream.
const KEY: usize = 0, NONCE: usize = 32, TAG: usize = 48, DATA: usize = 1024, STREAM: usize = 1024 + 66 * 1024;

function stream(length: i32): void {
  let to = STREAM;
  let counter = i32x4(0, 1, 2, 3);
  const end = STREAM + 64 + length;
  while (to < end) {
    const s0 = i32x4.splat(0x61707865), s1 = i32x4.splat(0x3320646e), s2 = i32x4.splat(0x79622d32), s3 = i32x4.splat(0x6b206574);
    ${[...Array(8).keys()].map((i) => `const s${4 + i} = v128.load32_splat(KEY + ${4 * i});`).join(" ")}
    const s12 = counter; ${[0, 1, 2].map((i) => `const s${13 + i} = v128.load32_splat(NONCE + ${4 * i});`).join(" ")}
    let ${WORD_INDEXES.map((i) => `x${i} = s${i}`).join(", ")};
    for (let i = 0; i < 10; i++) {${buildQuarterRound(0, 4, 8, 12)}${buildQuarterRound(1, 5, 9, 13)}${buildQuarterRound(2, 6, 10, 14)}${buildQuarterRound(3, 7, 11, 15)}${buildQuarterRound(0, 5, 10, 15)}${buildQuarterRound(1, 6, 11, 12)}${buildQuarterRound(2, 7, 8, 13)}${buildQuarterRound(3, 4, 9, 14)}
    }
    ${WORD_INDEXES.map((i) => `x${i} = i32x4.add(x${i}, s${i});`).join(" ")}
    let t0: v128, t1: v128, t2: v128, t3: v128;${rows.map(buildStore).join("")}
    counter = i32x4.add(counter, i32x4.splat(4));
    to += 256;
  }
}

function xor(length: i32): void {
  for (let i = 0; i < length; i += 16) v128.store(DATA + i, v128.xor(v128.load(DATA + i), v128.load(STREAM + 64 + i)));
}

/** Tag over the data's \`length\` bytes; no additional data. */
function mac(length: i32, to: usize): void {
  const M: u64 = 0x3ffffff;
  const a = load<u64>(STREAM), b = load<u64>(STREAM + 8);
  const ra = a & 0x0ffffffc0fffffff, rb = b & 0x0ffffffc0ffffffc;
  const r0 = ra & M, r1 = (ra >> 26) & M, r2 = ((ra >> 52) | (rb << 12)) & M, r3 = (rb >> 14) & M, r4 = rb >> 40;
  const s1 = r1 * 5, s2 = r2 * 5, s3 = r3 * 5, s4 = r4 * 5;
  let h0: u64 = 0, h1: u64 = 0, h2: u64 = 0, h3: u64 = 0, h4: u64 = 0;
  // The data is padded with zeros, followed by 8 bytes for the length of the additional data (0) and 8 bytes for the length of the data.
  const padded = (length + 15) & ~15;
  for (let i = length; i < padded; i++) store<u8>(DATA + i, 0);
  const total = padded + 16;
  for (let i = 0; i < total; i += 16) {
    let m0: u64, m1: u64;
    if (i < padded) { m0 = load<u64>(DATA + i); m1 = load<u64>(DATA + i + 8); } else { m0 = 0; m1 = length as u64; }
    h0 += m0 & M; h1 += (m0 >> 26) & M; h2 += ((m0 >> 52) | (m1 << 12)) & M; h3 += (m1 >> 14) & M; h4 += (m1 >> 40) | (1 << 24);
    const d0 = h0 * r0 + h1 * s4 + h2 * s3 + h3 * s2 + h4 * s1;
    let d1 = h0 * r1 + h1 * r0 + h2 * s4 + h3 * s3 + h4 * s2;
    let d2 = h0 * r2 + h1 * r1 + h2 * r0 + h3 * s4 + h4 * s3;
    let d3 = h0 * r3 + h1 * r2 + h2 * r1 + h3 * r0 + h4 * s4;
    let d4 = h0 * r4 + h1 * r3 + h2 * r2 + h3 * r1 + h4 * r0;
    d1 += d0 >> 26; h0 = d0 & M; d2 += d1 >> 26; h1 = d1 & M; d3 += d2 >> 26; h2 = d2 & M; d4 += d3 >> 26; h3 = d3 & M;
    h0 += (d4 >> 26) * 5; h4 = d4 & M; h1 += h0 >> 26; h0 &= M;
  }
  let c = h1 >> 26; h1 &= M; h2 += c; c = h2 >> 26; h2 &= M; h3 += c; c = h3 >> 26; h3 &= M; h4 += c; c = h4 >> 26; h4 &= M; h0 += c * 5; c = h0 >> 26; h0 &= M; h1 += c;
  let g0 = h0 + 5; c = g0 >> 26; g0 &= M; let g1 = h1 + c; c = g1 >> 26; g1 &= M; let g2 = h2 + c; c = g2 >> 26; g2 &= M; let g3 = h3 + c; c = g3 >> 26; g3 &= M;
  const g4 = h4 + c - (1 << 26);
  const keep: u64 = 0 - (g4 >> 63), take = ~keep;
  h0 = (h0 & keep) | (g0 & take); h1 = (h1 & keep) | (g1 & take); h2 = (h2 & keep) | (g2 & take); h3 = (h3 & keep) | (g3 & take); h4 = (h4 & keep) | (g4 & take & M);
  const lo = h0 | (h1 << 26) | (h2 << 52), hi = (h2 >> 12) | (h3 << 14) | (h4 << 40);
  const n0 = load<u64>(STREAM + 16), n1 = load<u64>(STREAM + 24);
  const o0 = lo + n0; const carry: u64 = o0 < lo ? 1 : 0;
  store<u64>(to, o0); store<u64>(to + 8, hi + n1 + carry);
}

/** Encrypts in place; the tag follows the data. */
export function seal(length: i32): void {
  stream(length);
  xor(length);
  mac(length, TAG);
  v128.store(DATA + length, v128.load(TAG));
}

/** \`length\` excludes the tag. Returns 1 if the tag is valid; only then is the data decrypted. */
export function open(length: i32): i32 {
  const x = load<u64>(DATA + length), y = load<u64>(DATA + length + 8);
  stream(length);
  mac(length, TAG);
  if (((x ^ load<u64>(TAG)) | (y ^ load<u64>(TAG + 8))) != 0) return 0;
  xor(length);
  return 1;
}
`;

/** Compiles the program. Throws with the compiler's message if it fails. */
export const compileAead = async (): Promise<Uint8Array> => {
  const files = new Map<string, string | Uint8Array>([["aead.ts", program]]);
  const options = [
    "--outFile",
    "aead.wasm",
    "-O3",
    "--runtime",
    "stub",
    "--noAssert",
    "--enable",
    "simd",
    "--initialMemory",
    "4",
  ];
  const { error, stderr } = await asc.main(["aead.ts", ...options], {
    readFile: (name: string) => (files.get(name) as string | undefined) ?? null,
    writeFile: (name: string, contents: string | Uint8Array) => void files.set(name, contents),
    listFiles: () => [],
  });
  if (error) throw new Error(`the compiler failed: ${error.message}\n${stderr.toString()}`);
  return files.get("aead.wasm") as Uint8Array;
};

if (import.meta.main) {
  const code = Buffer.from(await compileAead()).toString("base64");
  const text = `// Written by \`bun run build:aead\` from build.ts. As text, since a compiled program has no file alongside it.\nexport const AEAD_CODE =\n  "${code}";\n`;
  writeFileSync(join(import.meta.dir, "code.ts"), text);
}
