/** Column types that several tables share. */
import { sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { bigint, timestamp } from "drizzle-orm/pg-core";

/** @param name of the column, where it is not the property's name in snake case. */
export const timestamptz = (name = "") => timestamp(name, { withTimezone: true });

/** A total that only increases. */
export const counter = () => bigint({ mode: "number" }).notNull().default(0);

/** Mail servers deliver `name+tag@` to the mailbox of `name@`. */
export function toMailbox(email: SQLWrapper): SQL {
  return sql`regexp_replace(${email}, '[+][^@]*@', '@')`;
}
