/**
 * Custom domains of the hosted service: the platform takes traffic for a domain, and gets a certificate for
 * it, once it is a custom hostname of the tunnels' zone (Cloudflare for SaaS). A domain is one as long as
 * somebody has verified it.
 */
import { z } from "zod";
import { getConfig } from "../config/config.ts";
import type { Env } from "../env.ts";
import { callOperatorService } from "../operator-network.ts";
import type { Database } from "../store/database.ts";
import { isVerifiedDomain } from "../store/domains/domains.ts";

/** One call to the API that makes custom hostnames. */
const CUSTOM_HOSTNAME_CALL_MAX_MS = 8_000;
const CUSTOM_HOSTNAME_ANSWER_MAX_BYTES = 256 * 1024;

/**
 * Makes the platform agree with the rows, in whatever order the messages of several changes arrive.
 * @throws Error when it does not take it now.
 */
export async function syncCustomHostname(env: Env, db: Database, domain: string): Promise<void> {
  const zone = openZone(env);
  if (!zone) return;
  let isWanted = await isVerifiedDomain(db, domain);
  for (;;) {
    if (isWanted) await zone.ensure(domain);
    else await zone.remove(domain);
    // It may have changed hands meanwhile, and that message been delivered before this one was through.
    const isStillWanted = await isVerifiedDomain(db, domain);
    if (isStillWanted === isWanted) return;
    isWanted = isStillWanted;
  }
}

const HostnameList = z.object({ result: z.array(z.object({ id: z.string(), hostname: z.string() })) });
const ErrorAnswer = z.object({ errors: z.array(z.object({ code: z.number() })) });

/** @returns null when the server is not run there, as a self-hosted one. */
function openZone(env: Env) {
  const { CF_API_URL: api, CF_API_TOKEN: token, CF_ZONE_ID: id } = getConfig(env);
  if (token === undefined || id === undefined) return null;
  const hostnames = `${api}/zones/${id}/custom_hostnames`;

  async function call(method: string, url: string, body?: object): Promise<unknown> {
    const response = await callOperatorService(
      env,
      url,
      {
        method,
        redirect: "manual",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      },
      { maxMs: CUSTOM_HOSTNAME_CALL_MAX_MS, maxBytes: CUSTOM_HOSTNAME_ANSWER_MAX_BYTES },
    );
    const answer: unknown = await response.json().catch(() => undefined);
    // Another delivery may have been faster.
    const isGone = method === "DELETE" && response.status === 404;
    if (response.ok || isGone) return answer;
    const codes = ErrorAnswer.safeParse(answer)
      .data?.errors.map(({ code }) => code)
      .join(", ");
    throw new Error(`${method} custom_hostnames answered ${response.status} (${codes ?? "-"})`);
  }

  /** The filter finds names that contain it, too. */
  async function find(domain: string) {
    const query = new URLSearchParams({ hostname: domain });
    const { result } = HostnameList.parse(await call("GET", `${hostnames}?${query.toString()}`));
    return result.filter(({ hostname }) => hostname === domain);
  }

  return {
    async ensure(domain: string): Promise<void> {
      if ((await find(domain)).length > 0) return;
      await call("POST", hostnames, { hostname: domain, ssl: { method: "http", type: "dv" } });
    },
    async remove(domain: string): Promise<void> {
      for (const found of await find(domain)) await call("DELETE", `${hostnames}/${found.id}`);
    },
  };
}
