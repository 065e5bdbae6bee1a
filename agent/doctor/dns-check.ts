/** Whether the server's name leads to addresses, and to which. */
import { lookup, type LookupAddress } from "node:dns";
import ipaddr from "ipaddr.js";
import { explainError } from "../error-message.ts";
import { findErrorCode, ok, problem, skipped, warning, type Outcome } from "./check.ts";
import { getHost } from "../outgoing/address.ts";
import { isAddress, type Route } from "./route.ts";

/** Names that private networks use: private addresses are expected. */
const PRIVATE_NAME =
  /(?:^|\.)(?:localhost|local|internal|lan|intranet|corp|home\.arpa|test|example)$/;

export type AddressLookup = (name: string) => Promise<LookupAddress[]>;
export type ResolvedRoute = Route & { addresses: string[] };

export async function checkDns(
  route: Route,
  findAddresses: AddressLookup = lookUp,
): Promise<Outcome<ResolvedRoute>> {
  const name = getHost(route.server);
  if (isAddress(route.server)) {
    const value = { ...route, addresses: [name] };
    return skipped("the server is given by its address, so no name is looked up", value);
  }
  if (route.proxy) {
    return skipped("the proxy resolves the server's name", { ...route, addresses: [] });
  }
  const tried = `looking up ${name} with this machine's resolver`;
  const startedAtMs = performance.now();
  let found: LookupAddress[];
  try {
    found = await findAddresses(name);
  } catch (error) {
    return describeFailure(tried, name, error);
  }
  const tookMs = Math.round(performance.now() - startedAtMs);
  const addresses = found.map(({ address }) => address);
  const families = new Set(found.map(({ family }) => family));
  const only = families.size > 1 ? "" : families.has(6) ? ", IPv6 only" : ", IPv4 only";
  const result = `${name} is ${addresses.join(", ")} (${tookMs} ms${only})`;
  const value = { ...route, addresses };
  const isPublicName = name.includes(".") && !PRIVATE_NAME.test(name);
  if (isPublicName && addresses.every(isNotPublic)) {
    return warning(
      tried,
      `${result}, which is not a public address`,
      "This is right for a server in your own network. Otherwise a DNS filter or a login page of this network answers instead: use another resolver, for example 1.1.1.1.",
      value,
    );
  }
  return ok(tried, result, value);
}

function describeFailure(tried: string, name: string, error: unknown): Outcome<never> {
  switch (findErrorCode(error)) {
    case "ENOTFOUND":
      return problem(
        tried,
        `the resolver says that ${name} does not exist (NXDOMAIN)`,
        "Check the spelling of the server's address. If it is right, the resolver of this network blocks or does not know it: try another one, for example 1.1.1.1.",
      );
    case "EAI_AGAIN":
    case "ETIMEOUT":
      return problem(
        tried,
        "the resolver does not answer",
        "Check that this machine is online, and that its DNS resolver is reachable.",
      );
    default:
      return problem(
        tried,
        `the look-up failed: ${explainError(error)}`,
        "Check the DNS settings of this machine.",
      );
  }
}

function isNotPublic(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() !== "unicast";
}

function lookUp(name: string): Promise<LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, addresses) => (error ? reject(error) : resolve(addresses)));
  });
}
