// Certificates for tests, made by openssl.
import { join } from "node:path";
import { needs } from "../support/needs.ts";

/** Signed by itself, valid for `days` from now on; where its two files are. */
export const makeCertificate = async (
  folder: string,
  name: string,
  names = "DNS:localhost,IP:127.0.0.1",
  days = 30,
): Promise<{ cert: string; key: string }> => {
  const [cert, key] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const subject = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=${names}`];
  const argv = ["req", "-x509", ...curve, "-days", `${days}`, "-keyout", key, "-out", cert, ...subject];
  const child = Bun.spawn([needs.openssl.file, ...argv], { stdout: "ignore", stderr: "pipe" });
  const said = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(said);
  return { cert, key };
};
