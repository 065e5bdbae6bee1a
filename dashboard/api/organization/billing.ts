/** The plan of the organization and its subscription, for owners. */
import { queryOptions } from "@tanstack/react-query";
import type { Billing } from "../../../protocol/schemas/billing.ts";
import { load } from "../session.ts";

export const billingQuery = queryOptions({
  queryKey: ["billing"],
  queryFn: ({ signal }) => load<Billing>("/billing", signal),
});
