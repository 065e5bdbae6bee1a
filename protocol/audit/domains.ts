/** Audit actions of custom domains and reserved subdomains. */
import type { ActionDescription } from "./action-description.ts";

export const DOMAIN_ACTIONS = {
  domain_claimed: {
    resource: "domain",
    predicate: "added the domain {it}",
    description: "A custom domain was added, unverified.",
  },
  domain_verified: {
    resource: "domain",
    predicate: "verified the domain {it}",
    description: "The organization has proved that the domain is its own.",
  },
  domain_proof_missing: {
    resource: "domain",
    predicate: "did not find the record that verifies the domain {it}",
    description:
      "The record of the verified domain was not found. The domain is released at `metadata.releaseAt` unless it is back.",
  },
  domain_proof_found: {
    resource: "domain",
    predicate: "found the record that verifies the domain {it} again",
    description: "The record of the verified domain is back.",
  },
  domain_bound: {
    resource: "domain",
    predicate: "pointed the domain {it} to the tunnel {tunnelId}",
    description: "The domain leads to the tunnel `metadata.tunnelId`.",
  },
  domain_unbound: {
    resource: "domain",
    predicate: "pointed the domain {it} to no tunnel",
    description: "The domain no longer leads to a tunnel.",
  },
  domain_released: {
    resource: "domain",
    predicate: "removed the domain {it}",
    description:
      "The domain was removed. Without a user: it was not verified in time, its record was missing for 7 days, or another organization verified it (`metadata.reason`).",
  },
  subdomain_reserved: {
    resource: "subdomain",
    predicate: "reserved the name {it}",
    description: "The subdomain was reserved.",
  },
  subdomain_released: {
    resource: "subdomain",
    predicate: "released the name {it}",
    description: "The reservation of the subdomain was given up.",
  },
} as const satisfies Record<string, ActionDescription>;
