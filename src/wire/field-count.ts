// Counts the fields in the bytes of a message before it is decoded, because two bytes of it can decode to an object of 500 bytes. Includes
// the fields of nested messages, unknown fields, and the elements of packed lists. Pure.
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";

/** By field number, the fields of a message that contain more fields: nested messages, maps, and packed lists. */
type Shape = ReadonlyMap<number, DescMessage | "packed" | Shape>;

const shapes = new WeakMap<DescMessage, Shape>();

const toShape = (message: DescMessage): Shape => {
  let shape = shapes.get(message);
  if (!shape) {
    shape = new Map(
      message.fields.flatMap((field) => listContents(field).map((inside) => [field.number, inside] as const)),
    );
    shapes.set(message, shape);
  }
  return shape;
};

/** The field number of the value in a map's entries. */
const MAP_VALUE = 2;

const listContents = (field: DescField): (DescMessage | "packed" | Shape)[] => {
  if (field.fieldKind === "message") return [field.message];
  if (field.fieldKind === "map") return field.message ? [new Map([[MAP_VALUE, field.message]])] : [new Map()];
  if (field.fieldKind !== "list") return [];
  if (field.listKind === "message") return [field.message];
  // Lists of strings are never packed: each element is a separate field.
  const isText =
    field.listKind === "scalar" && (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES);
  return isText ? [] : ["packed"];
};

const VARINT = 0;
const FIXED_64 = 1;
const DELIMITED = 2;
const FIXED_32 = 5;

/**
 * Returns whether a message of this type has more than `maxCount` fields. The result is arbitrary for bytes that are not such a message.
 */
export const hasMoreFields = (schema: DescMessage, bytes: Uint8Array, maxCount: number): boolean => {
  const open: { readonly shape: Shape; readonly end: number }[] = [{ shape: toShape(schema), end: bytes.byteLength }];
  let at = 0;
  let count = 0;
  const readVarint = (): number => {
    let value = 0;
    for (let factor = 1; at < bytes.byteLength; factor *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 127) * factor;
      if (byte < 128) break;
    }
    return value;
  };
  for (let top = open.at(-1); top; top = open.at(-1)) {
    if (at >= top.end) {
      open.pop();
      continue;
    }
    const tag = readVarint();
    count += 1;
    const type = tag % 8;
    if (type === VARINT) readVarint();
    else if (type === FIXED_64) at += 8;
    else if (type === FIXED_32) at += 4;
    else if (type === DELIMITED) {
      const length = readVarint();
      const inside = top.shape.get(Math.floor(tag / 8));
      if (inside === "packed") count += length;
      if (inside === undefined || inside === "packed") at += length;
      else
        open.push({
          shape: inside instanceof Map ? inside : toShape(inside as DescMessage),
          end: Math.min(at + length, bytes.byteLength),
        });
    }
    if (count > maxCount) return true;
  }
  return false;
};
