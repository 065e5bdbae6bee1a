/** The plan of the organization and its subscription, for owners. */
import { queryOptions } from "@tanstack/react-query";
import type { Billing } from "../../../protocol/schemas/billing.ts";
import { call } from "../session.ts";

export const billingQuery = queryOptions({
  queryKey: ["billing"],
  queryFn: ({ signal }) => call<Billing>("GET", "/billing", undefined, signal),
});
