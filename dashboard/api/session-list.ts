/** The active sessions of the user's account, on all devices. */
import { queryOptions } from "@tanstack/react-query";
import type { SessionList } from "../../protocol/schemas/accounts/accounts.ts";
import { load } from "./session.ts";

export const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: ({ signal }) => load<SessionList>("/auth/sessions", signal),
});
