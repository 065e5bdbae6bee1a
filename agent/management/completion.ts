/**
 * The names of tunnels and tokens that the completion of a shell offers. A shell waits for them, so that a server which
 * does not answer soon, and a machine without a login, complete nothing and say nothing.
 */
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import { findOptionText, type OptionSpecs } from "../options.ts";
import { findServerEndpoint } from "../server-access.ts";
import { findCredential } from "./credential.ts";
import { isTokenValid } from "./find-token.ts";
import { ManagementApi } from "./management-api.ts";

/**
 * Words that every shell takes literally. bash puts an offered word into the command line as it is, and would run a
 * command in a name that someone else has chosen.
 */
const LITERAL_WORD = /^[\p{L}\p{N}_][\p{L}\p{N}_.:@%+/-]*$/u;
/** How long a person waits for a completion without pressing the key again. */
const ANSWER_MAX_MS = 1_500;

/**
 * The names of tunnels that have not expired, newest first: one page of them.
 * @param fits whether the command can use the tunnel.
 */
export function completeTunnels(
  args: string[],
  options: OptionSpecs,
  fits: (tunnel: Tunnel) => boolean = () => true,
): Promise<string[]> {
  return complete(args, options, async (api, signal) => {
    for await (const page of api.listTunnels(signal)) {
      const current = page.filter((tunnel) => tunnel.status !== "expired" && fits(tunnel));
      return current.map(({ subdomain }) => subdomain);
    }
    return [];
  });
}

/**
 * The names of valid tokens, or their nonces where the name is not unique or no literal word, newest first: one page of
 * them.
 */
export function completeTokens(args: string[], options: OptionSpecs): Promise<string[]> {
  return complete(args, options, async (api, signal) => {
    for await (const page of api.listTokens(signal)) {
      const valid = page.filter(isTokenValid);
      const isUnique = (name: string): boolean =>
        valid.filter((token) => token.name === name).length === 1;
      return valid.map(({ name, nonce }) =>
        LITERAL_WORD.test(name) && isUnique(name) ? name : nonce,
      );
    }
    return [];
  });
}

/** @param args may be an incomplete command line. */
async function complete(
  args: string[],
  options: OptionSpecs,
  list: (api: ManagementApi, signal: AbortSignal) => Promise<string[]>,
): Promise<string[]> {
  try {
    const find = (name: string) => findOptionText(args, options, name);
    const endpoint = await findServerEndpoint({
      server: find("server"),
      "ca-file": find("ca-file"),
    });
    const credential = await findCredential(endpoint.server, find("token-file"));
    const api = new ManagementApi(endpoint, credential);
    const words = await list(api, AbortSignal.timeout(ANSWER_MAX_MS));
    return words.filter((word) => LITERAL_WORD.test(word));
  } catch {
    return [];
  }
}
