/** `npx drizzle-kit generate --name what_changed` writes the next file of migrations/. */
import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "postgresql",
  schema: "./workers/store/tables/*.ts",
  out: "./migrations",
  casing: "snake_case",
});
