/** Looks up TXT records by DNS over HTTPS (RFC 8484), at the resolver that the operator has configured. */
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { describeError } from "../../errors.ts";
import { log } from "../../../shared/log.ts";
import { fetchConfiguredService } from "../../operator-network.ts";
import { parseTxtResponse, encodeTxtQuery } from "./message.ts";

const DNS_ANSWER_MAX_BYTES = 65_535;
const DNS_LOOKUP_MAX_MS = 5_000;

const MEDIA_TYPE = "application/dns-message";

/** @returns null when the result is inconclusive. A name that does not exist has no texts. */
export async function lookUpTxtRecords(
  env: Env,
  config: Config,
  name: string,
): Promise<string[] | null> {
  const answer = await queryResolver(env, config.DNS_OVER_HTTPS_URL, name).catch(
    (error: unknown) => ({
      failure: describeError(error),
    }),
  );
  if ("texts" in answer) return answer.texts;
  log("warn", "dns_failed", { name, cause: answer.failure });
  return null;
}

/** By POST: a cache on the way could answer a GET with the state before the record was published. */
async function queryResolver(env: Env, url: string, name: string) {
  const response = await fetchConfiguredService(
    env,
    url,
    {
      method: "POST",
      redirect: "manual",
      headers: { "content-type": MEDIA_TYPE, accept: MEDIA_TYPE },
      body: encodeTxtQuery(name),
    },
    { maxMs: DNS_LOOKUP_MAX_MS, maxBytes: DNS_ANSWER_MAX_BYTES },
  );
  const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (response.status !== 200 || type !== MEDIA_TYPE) {
    return {
      failure: `the resolver answered with status ${response.status} and ${type ?? "no content type"}`,
    };
  }
  return parseTxtResponse(await response.bytes(), name);
}
