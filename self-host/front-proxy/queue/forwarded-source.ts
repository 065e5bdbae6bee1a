/** The source of a request that has come through the operator's own proxy. */
import { getAddressGroup } from "../../../shared/address-group.ts";
import { getClientAddress } from "../../../shared/client-address.ts";
import type { RequestHead } from "../http1/request-head.ts";

const FORWARDED_FOR_FIELDS = /\r\nx-forwarded-for:([^\r]*)/gi;

/** @returns the group of the address that the proxy has added to `X-Forwarded-For`; `unknown` when it has added none. */
export function findForwardedSource({ bytes }: RequestHead): string {
  const fields = [...bytes.toString("latin1").matchAll(FORWARDED_FOR_FIELDS)];
  const headers = { get: () => fields.at(-1)?.[1] ?? null };
  return getAddressGroup(getClientAddress({ headers }, { onCloudflare: false, trustProxy: true }));
}
