import { sql } from "drizzle-orm";
import { tunnels } from "../tables/tunnels.ts";

/** Set by each change that a tunnel's object receives: the object applies a message only if its version is newer. */
export const NEXT_SETTINGS_VERSION = sql`${tunnels.settingsVersion} + 1`;
