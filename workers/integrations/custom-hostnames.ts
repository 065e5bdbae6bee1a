/**
 * Custom domains of the hosted service: Cloudflare accepts traffic for a domain, and issues a certificate for it, once
 * it is a custom hostname of the tunnels' zone (Cloudflare for SaaS). Every verified domain is a custom hostname.
 */
import { z } from "zod";
import { getConfig } from "../config/config.ts";
import type { Env } from "../env.ts";
import { fetchConfiguredService } from "../operator-network.ts";
import type { Database } from "../store/database.ts";
import { isVerifiedDomain } from "../store/domains/domains.ts";

/** The time limit of one call to Cloudflare's API. */
const CUSTOM_HOSTNAME_CALL_MAX_MS = 8_000;
/** A page of hostnames with the states of their certificates, of some KiB each. */
const CUSTOM_HOSTNAME_ANSWER_MAX_BYTES = 1024 * 1024;
/** The most that Cloudflare's API allows. */
const CUSTOM_HOSTNAMES_PER_PAGE = 50;

/**
 * Creates or deletes the custom hostname, as the rows say now: so the order in which messages arrive does not matter.
 * @throws Error when the API can't be reached or refuses.
 */
export async function syncCustomHostname(env: Env, db: Database, domain: string): Promise<void> {
  const zone = openZone(env);
  if (!zone) return;
  let isWanted = await isVerifiedDomain(db, domain);
  for (;;) {
    if (isWanted) await zone.ensure(domain);
    else await zone.remove(domain);
    // The row may have changed meanwhile, and the message of that change been delivered before this one finished.
    const isStillWanted = await isVerifiedDomain(db, domain);
    if (isStillWanted === isWanted) return;
    isWanted = isStillWanted;
  }
}

const HostnameList = z.object({
  result: z.array(z.object({ id: z.string(), hostname: z.string() })),
  result_info: z.object({ total_pages: z.number() }),
});
const ErrorAnswer = z.object({ errors: z.array(z.object({ code: z.number() })) });

/** @returns null when no zone is configured, as on a self-hosted server. */
function openZone(env: Env) {
  const { CF_API_URL: api, CF_API_TOKEN: token, CF_ZONE_ID: id } = getConfig(env);
  if (token === undefined || id === undefined) return null;
  const hostnames = `${api}/zones/${id}/custom_hostnames`;

  async function call(method: string, url: string, body?: object): Promise<unknown> {
    const response = await fetchConfiguredService(
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
    // A concurrent delivery may have deleted it already.
    const isGone = method === "DELETE" && response.status === 404;
    if (response.ok || isGone) return answer;
    const codes = ErrorAnswer.safeParse(answer)
      .data?.errors.map(({ code }) => code)
      .join(", ");
    throw new Error(
      `${method} custom_hostnames: status ${response.status}, error codes ${codes ?? "none"}`,
    );
  }

  /** The API's filter also matches names that contain the domain, so it may be on any page. @returns its id. */
  async function find(domain: string): Promise<string | undefined> {
    for (let page = 1; ; page++) {
      const query = new URLSearchParams({
        hostname: domain,
        page: String(page),
        per_page: String(CUSTOM_HOSTNAMES_PER_PAGE),
      });
      const answer = await call("GET", `${hostnames}?${query.toString()}`);
      const { result, result_info: info } = HostnameList.parse(answer);
      const found = result.find(({ hostname }) => hostname === domain);
      if (found || page >= info.total_pages) return found?.id;
    }
  }

  return {
    async ensure(domain: string): Promise<void> {
      if ((await find(domain)) !== undefined) return;
      await call("POST", hostnames, { hostname: domain, ssl: { method: "http", type: "dv" } });
    },
    async remove(domain: string): Promise<void> {
      const id = await find(domain);
      if (id !== undefined) await call("DELETE", `${hostnames}/${id}`);
    },
  };
}
