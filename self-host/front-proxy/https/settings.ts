/** The settings of HTTPS, which the server passes to the front proxy. */
import { z } from "zod";

const AcmeSettings = z.object({
  directoryUrl: z.string(),
  email: z.string().nullable(),
  /** Where issued certificates are stored, absolute. */
  directory: z.string(),
});
export type AcmeSettings = z.infer<typeof AcmeSettings>;

export const HttpsSettings = z.object({
  /** The address to listen on; null: all addresses. */
  host: z.string().nullable(),
  port: z.int(),
  /** The port in public URLs. */
  publicPort: z.int(),
  /** Where plain HTTP is redirected to HTTPS; null: nowhere. */
  redirectPort: z.int().nullable(),
  /** Absolute paths of files in PEM: the certificate with the intermediate ones, and its private key. */
  files: z.object({ certificateFile: z.string(), keyFile: z.string() }).nullable(),
  /** For hosts that the certificate in the files is not for; null: those hosts get no certificate. */
  acme: AcmeSettings.nullable(),
});
export type HttpsSettings = z.infer<typeof HttpsSettings>;
