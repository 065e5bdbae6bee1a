/** The gateway's secret, with which the Worker authenticates itself. */
import { hash, timingSafeEqual } from "node:crypto";

/** Takes the same time for every candidate, so that the time reveals nothing about the secret. */
export type VerifySecret = (candidate: string) => boolean;

export function createSecretVerifier(secret: string): VerifySecret {
  // Digests have equal lengths, whatever the candidate's is.
  const digest = (text: string) => hash("sha256", text, "buffer");
  const expected = digest(secret);
  return (candidate) => timingSafeEqual(digest(candidate), expected);
}
