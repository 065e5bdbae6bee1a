/** The identity providers that the server has. */
import { queryOptions } from "@tanstack/react-query";
import type { Providers } from "../../protocol/schemas/accounts/providers.ts";
import { send } from "./request.ts";

export const providersQuery = queryOptions({
  queryKey: ["providers"],
  queryFn: () => send<Providers>("GET", "/auth/providers"),
  staleTime: Infinity,
});
