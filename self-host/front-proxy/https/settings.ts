/** The settings of HTTPS, which the server passes to the front proxy. */
import { z } from "zod";

export const HttpsSettings = z.object({
  /** The address to listen on; null: all addresses. */
  host: z.string().nullable(),
  port: z.int(),
  /** In URLs. */
  publicPort: z.int(),
  /** Where plain HTTP is redirected to HTTPS; null: nowhere. */
  redirectPort: z.int().nullable(),
  /** Absolute paths of files in PEM: the certificate with the intermediate ones, and its private key. */
  certificateFile: z.string(),
  keyFile: z.string(),
});
export type HttpsSettings = z.infer<typeof HttpsSettings>;
