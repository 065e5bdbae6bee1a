/** The proof that a custom domain belongs to an organization: a TXT record with the value of the organization's claim. */
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { lookUpTxtRecords } from "./lookup.ts";

/** The label of the record, below the domain. */
const PROOF_LABEL = "_svc-challenge";

/** The name of the TXT record that proves the domain. */
export function getProofRecordName(domain: string): string {
  return `${PROOF_LABEL}.${domain}`;
}

/** `no_record`: there is no TXT record at all. `unavailable`: the result is inconclusive. */
type ProofResult = "proven" | "no_record" | "wrong_value" | "unavailable";

export async function checkProof(
  env: Env,
  config: Config,
  { domain, verificationToken }: { domain: string; verificationToken: string },
): Promise<ProofResult> {
  const texts = await lookUpTxtRecords(env, config, getProofRecordName(domain));
  if (texts === null) return "unavailable";
  if (texts.length === 0) return "no_record";
  const isProven = texts.some((text) => equalInConstantTime(text, verificationToken));
  return isProven ? "proven" : "wrong_value";
}
