// Lists the uploads that the database expects in a bucket, before this process joins the cluster, and for inspecting an installation.
import { Primary } from "./primary.ts";

const MAX_OBJECTS = 3;

/** Returns the newest objects with uploads; none before the first start. Throws CommitError (`unreachable`) when no primary answers. */
export const listStoredObjects = async (url: string, options: { wait_ms?: number } = {}): Promise<string[]> => {
  const primary = new Primary(url, options);
  try {
    const sql = await primary.writer();
    const [{ there: exists }] = await sql.unsafe("select to_regclass('blob_objects') is not null as there");
    if (!exists) return [];
    const newest = `select object from blob_objects where state = 'kept' order by at desc limit ${MAX_OBJECTS}`;
    return ((await sql.unsafe(newest)) as { object: string }[]).map(({ object }) => object);
  } finally {
    await primary.close();
  }
};
