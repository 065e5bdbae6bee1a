/** The state of the server's own set-up. */
import { queryOptions } from "@tanstack/react-query";
import type { SetupState } from "../../protocol/schemas/accounts/devices.ts";
import { send } from "./request.ts";

export const setupQuery = queryOptions({
  queryKey: ["setup"],
  queryFn: () => send<SetupState>("GET", "/setup"),
});
