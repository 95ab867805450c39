// Generates a name for a version without one, such as eager_otter7: easy to say and unlikely to be taken.
import { uuid } from "#base/ids.ts";

const FIRST =
  "able bold brave brisk calm clever cosy daring eager fair fleet fond gentle glad happy jolly keen kind lively lucky merry mild neat nimble proud quick quiet ready sharp sunny warm wise";
const SECOND =
  "badger bear beaver crane deer dove falcon finch fox gecko hare heron ibex jay koala lark lynx marten mole newt otter owl panda puffin raven robin seal stork swan tern vole wren";

const first = FIRST.split(" ");
const second = SECOND.split(" ");

export const randomVersionName = (): string => {
  const bytes = Buffer.from(uuid().replaceAll("-", ""), "hex");
  const pick = (words: readonly string[], at: number): string => words[(bytes[at] as number) % words.length] as string;
  return `${pick(first, 0)}_${pick(second, 1)}${bytes.readUInt16BE(2) % 1000}`;
};
