import { pgTable, text } from "drizzle-orm/pg-core";

/** Fingerprints of the keys that this database was written with. */
export const installation = pgTable("installation", {
  key: text().primaryKey(),
  value: text().notNull(),
});
