// Test certificates, created with openssl.
import { join } from "node:path";
import { needs } from "../support/needs.ts";

/** Creates a self-signed certificate, valid for `days` from now; returns the paths of its two files. */
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
  await openssl(argv);
  return { cert, key };
};

/** Creates a certificate authority. Clients must trust its `cert`. */
export const makeAuthority = async (folder: string) => {
  const authority = await makeCertificate(folder, "authority", "DNS:authority.example.com");
  return {
    cert: authority.cert,
    /** Signs a certificate; returns the paths of its two files. */
    async sign(name: string, names: string): Promise<{ cert: string; key: string }> {
      const [cert, key, requestFile] = ["pem", "key", "csr"].map((extension) =>
        join(folder, `${name}.${extension}`),
      ) as [string, string, string];
      const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
      await openssl(["req", ...curve, "-keyout", key, "-out", requestFile, "-subj", `/CN=${name}`]);
      const extensions = join(folder, `${name}.ext`);
      await Bun.write(extensions, `subjectAltName=${names}\n`);
      const signOptions = ["-CA", authority.cert, "-CAkey", authority.key, "-CAcreateserial", "-days", "30"];
      await openssl(["x509", "-req", "-in", requestFile, ...signOptions, "-extfile", extensions, "-out", cert]);
      return { cert, key };
    },
  };
};

const openssl = async (argv: readonly string[]): Promise<void> => {
  const child = Bun.spawn([needs.openssl.file, ...argv], { stdout: "ignore", stderr: "pipe" });
  const errors = await child.stderr.text();
  if ((await child.exited) !== 0) throw new Error(errors);
};
